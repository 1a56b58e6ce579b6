# Toolchain file: AArch64 Linux on another machine, by Debian's cross compiler and the libraries in CRESSET_ARM64_SYSROOT (tools/arm64_sysroot).
# Programs of the build, such as the tests, run under qemu's user mode. docs/guide/arm64.md.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(CRESSET_ARM64_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot CACHE PATH "Folder with AArch64's libraries and headers")
cmake_path(ABSOLUTE_PATH CRESSET_ARM64_SYSROOT NORMALIZE OUTPUT_VARIABLE CMAKE_SYSROOT)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CRESSET_ARM64_SYSROOT)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
  message(FATAL_ERROR "${CMAKE_SYSROOT} has no libraries for AArch64. `CRESSET_SETUP_ARM=1 tools/setup` makes it; elsewhere set CRESSET_ARM64_SYSROOT.")
endif()

set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# A processor of the first kind: what runs there runs on all. The emulator's best has vectors of 512 bits, which few processors have.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu cortex-a72 -L ${CMAKE_SYSROOT})

# Programs are this machine's, all else is the other's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})

# The interpreter is this machine's, the headers are those of the other's.
file(GLOB Python_INCLUDE_DIR ${CMAKE_SYSROOT}/usr/include/python3.*)
