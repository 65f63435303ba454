# How everything here is compiled: the C dialect, the warnings, the sanitizers. Targets
# take it by linking mla_flags.
add_library(mla_flags INTERFACE)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

target_include_directories(mla_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(mla_flags INTERFACE _GNU_SOURCE)
target_compile_options(mla_flags INTERFACE
    -fvisibility=hidden
    -ffp-contract=off # fused operations are written out, so that C and SIMD can be compared
    -fno-math-errno
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes
    -Wmissing-prototypes -Wundef -Wcast-align -Wcast-qual -Wwrite-strings -Wformat=2 -Wvla
    -Wdouble-promotion -Wnull-dereference -Wimplicit-fallthrough -Wpointer-arith)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_compile_options(mla_flags INTERFACE -Wcast-align=strict -Walloca -Wswitch-enum
        -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wjump-misses-init
        -Wold-style-definition -Wredundant-decls)
elseif(CMAKE_C_COMPILER_ID MATCHES "Clang")
    target_compile_options(mla_flags INTERFACE -Wcomma
        -Wmissing-variable-declarations -Wunreachable-code)
endif()
if(MLA_WERROR)
    target_compile_options(mla_flags INTERFACE -Werror)
endif()
if(MLA_RETAIN_PRIMING)
    target_compile_definitions(mla_flags INTERFACE MLA_RETAIN_PRIMING=1)
endif()

# What instruments code, in any language: part of mla_flags.
add_library(mla_instruments INTERFACE)
target_link_libraries(mla_flags INTERFACE mla_instruments)
if(MLA_SANITIZE)
    target_compile_options(mla_instruments INTERFACE -fsanitize=${MLA_SANITIZE}
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(mla_instruments INTERFACE -fsanitize=${MLA_SANITIZE})
endif()
if(MLA_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "MLA_FUZZ needs clang: libFuzzer is part of it")
    endif()
    target_compile_options(mla_instruments INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(mla_instruments INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(MLA_COVERAGE)
    target_compile_options(mla_instruments INTERFACE --coverage -fprofile-update=atomic) # threads
    target_link_options(mla_instruments INTERFACE --coverage)
endif()
