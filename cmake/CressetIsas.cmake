# Sets CRESSET_COMPILED_ISAS, the instruction sets that the CPU's kernels are compiled for, by the option CRESSET_CPU_ISAS, and writes
# them down for the kernels (src/backends/cpu/isa.h). `native` is the best set of the machine of the build: quicker to compile, and it
# may not run elsewhere.
if(CRESSET_CPU_ISAS STREQUAL "native")
  set(CRESSET_COMPILED_ISAS baseline)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  if(macros MATCHES "__AVX512F__" AND macros MATCHES "__AVX512BW__" AND macros MATCHES "__AVX512CD__" AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512VL__")
    set(CRESSET_COMPILED_ISAS avx512)
  elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__" AND macros MATCHES "__BMI2__" AND macros MATCHES "__F16C__")
    set(CRESSET_COMPILED_ISAS avx2)
  endif()
elseif(NOT CRESSET_CPU_ISAS STREQUAL "all")
  set(CRESSET_COMPILED_ISAS ${CRESSET_CPU_ISAS})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(CRESSET_COMPILED_ISAS baseline avx2 avx512)
else()
  set(CRESSET_COMPILED_ISAS baseline)
endif()
set(compiled "")
set(in_each "")
set(chosen "")
set(table "")
foreach(isa IN ITEMS baseline avx2 avx512)
  if(NOT isa IN_LIST CRESSET_COMPILED_ISAS)
    string(APPEND table "nullptr, ")
    continue()
  endif()
  string(SUBSTRING ${isa} 0 1 first)
  string(TOUPPER ${first} first)
  string(SUBSTRING ${isa} 1 -1 rest)
  string(APPEND compiled "Isa::${first}${rest}, ")
  string(APPEND in_each " namespace ${isa} { __VA_ARGS__ }")
  string(APPEND table "&::cresset::cpu::${isa}::NAME, ")
  if(chosen STREQUAL "")
    set(chosen "${isa}::NAME")
  else()
    set(chosen "isa() == Isa::${first}${rest} ? ${isa}::NAME : ${chosen}")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${CRESSET_GEN_DIR}/src/cpu/compiled_isas.h @ONLY CONTENT
"// Written by src/backends/cpu/CMakeLists.txt; see backends/cpu/isa.h.
#pragma once
#define CRESSET_COMPILED_ISAS @compiled@
#define CRESSET_IN_EACH_ISA(...)@in_each@
#define CRESSET_FOR_THIS_PROCESSOR(NAME) ((void)isa(), @chosen@)
#define CRESSET_ISA_TABLE(NAME) {@table@}
")
