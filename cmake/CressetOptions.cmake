# Build options, compiler flags shared by all targets, and the third-party libraries.

option(CRESSET_BUILD_PYTHON "Build the Python extension module" ON)
option(CRESSET_BUILD_TESTS "Build the C++ tests" OFF)
option(CRESSET_BUILD_BENCHMARKS "Build the C++ benchmarks" OFF)
option(CRESSET_PYTHON_INPLACE "Put the extension module into python/cresset, so that the source tree is importable" OFF)
option(CRESSET_WERROR "Treat warnings as errors" OFF)
option(CRESSET_NATIVE "Machine code for scripted loops of scalars, on x86-64 with asmjit; without it they are interpreted" ON)
option(CRESSET_CCACHE "Compile through ccache when it is installed" ON)
option(CRESSET_UNITY "Compile several sources as one; good for one clean build, while a change compiles more" OFF)
option(CRESSET_PCH "Precompile the common headers; good for one clean build, while ccache is better for many small ones" OFF)
set(CRESSET_SANITIZE "" CACHE STRING "Sanitizers of all targets, such as address;undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "Flags of release builds" FORCE)

# Paths below the source folder are made relative for ccache, so that another checkout finds the same entries.
if(CRESSET_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CRESSET_CCACHE_PROGRAM ccache)
  if(CRESSET_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CRESSET_CCACHE_PROGRAM})
  endif()
endif()

# Flags of the code that belongs to the project; consumers never see them.
add_library(cresset_flags INTERFACE)
target_compile_options(cresset_flags INTERFACE -Wall -Wextra -fno-semantic-interposition)
# __FILE__ is the path inside the repository, whether the compiler sees absolute paths or ccache's relative ones.
file(RELATIVE_PATH source_from_build ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
string(REGEX REPLACE "/$" "" source_from_build "${source_from_build}")
target_compile_options(cresset_flags INTERFACE
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${source_from_build}/=)
if(CRESSET_WERROR)
  target_compile_options(cresset_flags INTERFACE -Werror)
endif()

if(CRESSET_SANITIZE)
  list(JOIN CRESSET_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(ZLIB REQUIRED)
# oneDNN by library and header: its CMake package also asks for OpenCL's development files, which nothing here needs.
find_library(CRESSET_DNNL_LIBRARY dnnl REQUIRED)
find_path(CRESSET_DNNL_INCLUDE dnnl.hpp PATH_SUFFIXES oneapi/dnnl REQUIRED)
# kissfft by its header: the class template needs none of the package's libraries.
find_path(CRESSET_KISSFFT_INCLUDE kissfft/kissfft.hh)
if(NOT CRESSET_KISSFFT_INCLUDE)
  message(FATAL_ERROR "kissfft/kissfft.hh was not found. On Debian it is in libkissfft-dev, which tools/setup installs; elsewhere set CRESSET_KISSFFT_INCLUDE.")
endif()
pkg_check_modules(openblas REQUIRED IMPORTED_TARGET openblas)
# asmjit is static in Debian and becomes part of libcresset; its symbols stay inside.
if(CRESSET_NATIVE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  find_package(asmjit CONFIG QUIET)
endif()
if(TARGET asmjit::asmjit)
  set(CRESSET_NATIVE_LIBRARY asmjit::asmjit -Wl,--exclude-libs,libasmjit.a)
else()
  message(STATUS "Scripted loops of scalars are interpreted: no asmjit for ${CMAKE_SYSTEM_PROCESSOR} (Debian: libasmjit-dev), or CRESSET_NATIVE is off")
endif()

# nlohmann_json, CLI11 and kissfft are header-only; the rest is linked to libcresset and invisible to its users.
add_library(cresset_dependencies INTERFACE)
target_include_directories(cresset_dependencies SYSTEM INTERFACE ${CRESSET_KISSFFT_INCLUDE})
target_link_libraries(cresset_dependencies INTERFACE
  fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json ${CRESSET_DNNL_LIBRARY} PkgConfig::openblas ZLIB::ZLIB ${CRESSET_NATIVE_LIBRARY} Threads::Threads)
