# What `cmake --install` puts where: the headers, libmla both ways, the program, the licence,
# and what pkg-config and find_package(mla) read.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mla)

install(TARGETS mla_shared mla_static EXPORT mlaTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS mla RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/mla DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# find_package(mla): mla::mla is the shared library, mla::static the archive.
install(EXPORT mlaTargets NAMESPACE mla:: DESTINATION ${package_dir})
configure_package_config_file(cmake/mlaConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/mlaConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/mlaConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mlaConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/mlaConfigVersion.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH mla_up_from_pkgconfig "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" mla_up_from_pkgconfig "${mla_up_from_pkgconfig}")
configure_file(cmake/mla.pc.in ${CMAKE_CURRENT_BINARY_DIR}/mla.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mla.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
