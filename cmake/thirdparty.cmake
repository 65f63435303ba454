# What other people wrote and we link: jansson, pcre2 and libevent in the program, cmocka in
# the tests.
# libmla itself needs libc, libm and threads only.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# third_party(NAME MODULE LIBRARY): the target third_party_NAME, from the pkg-config module; with
# MLA_STATIC_DEPS from its archive, so that the program runs where the package is not.
function(third_party name module library)
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
    add_library(third_party_${name} INTERFACE)
    if(MLA_STATIC_DEPS)
        find_library(${name}_archive lib${library}.a
            HINTS ${${name}_LIBRARY_DIRS} REQUIRED)
        target_include_directories(third_party_${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
        target_link_libraries(third_party_${name} INTERFACE ${${name}_archive} Threads::Threads)
    else()
        target_link_libraries(third_party_${name} INTERFACE PkgConfig::${name})
    endif()
endfunction()

third_party(jansson jansson jansson)
third_party(pcre2 libpcre2-8 pcre2-8)
third_party(libevent libevent_core event_core)
