# find_package(Torch) in an environment with cresset-as-torch: Cresset's own file, beside this package or where its Python module says.
set(_cresset_torch "${CMAKE_CURRENT_LIST_DIR}/../../../../cresset/lib/cmake/Torch/TorchConfig.cmake")
if(NOT EXISTS "${_cresset_torch}")
  find_package(Python REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import cresset; print(cresset.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE _cresset_prefix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  find_file(_cresset_found TorchConfig.cmake PATHS "${_cresset_prefix}" PATH_SUFFIXES lib/cmake/Torch . NO_DEFAULT_PATH NO_CACHE REQUIRED)
  set(_cresset_torch "${_cresset_found}")
endif()
include("${_cresset_torch}")
