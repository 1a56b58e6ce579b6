# The instruction sets that the CPU's kernels can be compiled for: one row each, from lowest to best. Sets CRESSET_COMPILED_ISAS by the option
# CRESSET_CPU_ISAS and writes them down for the kernels (src/backends/cpu/isa.h). `native` is the best set of the machine of the build:
# quicker to compile, and it may not run elsewhere.
#
#   PROCESSORS  regular expression of CMAKE_SYSTEM_PROCESSOR; EXCEPT is one of those that have a better set always
#   TARGET      what `#pragma GCC target` switches on; nothing where the compiler does so by itself
#   FEATURES    what the processor must have, as the compiler calls it; none: every such processor has the set
#   VECTOR      bytes of a register: CRESSET_ISA_VECTOR_BYTES in the set's sources
#   HAS         CRESSET_ISA_HAS_<name> is 1 in the set's sources, for kernels with intrinsics of their own
set(names "")
macro(cresset_isa name)
  cmake_parse_arguments(${name} "" "PROCESSORS;EXCEPT;TARGET;VECTOR" "FEATURES;HAS" ${ARGN})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(${${name}_PROCESSORS})$" AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(${${name}_EXCEPT})$")
    list(APPEND names ${name})
  endif()
endmacro()
cresset_isa(baseline PROCESSORS ".*" EXCEPT "aarch64|arm64|ARM64" VECTOR 16)
cresset_isa(avx2 PROCESSORS "x86_64|AMD64" TARGET "arch=x86-64-v3" VECTOR 32 FEATURES avx2 fma bmi2 f16c HAS AVX2 FMA)
cresset_isa(avx512 PROCESSORS "x86_64|AMD64" TARGET "arch=x86-64-v4,prefer-vector-width=512" VECTOR 64 FEATURES avx512f avx512bw avx512cd avx512dq avx512vl HAS AVX2 FMA)
cresset_isa(neon PROCESSORS "aarch64|arm64|ARM64" VECTOR 16 HAS NEON FMA)

list(JOIN names ", " known)
if(CRESSET_CPU_ISAS STREQUAL "all")
  set(CRESSET_COMPILED_ISAS ${names})
elseif(CRESSET_CPU_ISAS STREQUAL "native")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  foreach(isa IN LISTS names)
    set(supported TRUE)
    foreach(feature IN LISTS ${isa}_FEATURES)
      string(TOUPPER "__${feature}__" macro)
      if(NOT macros MATCHES "${macro}")
        set(supported FALSE)
      endif()
    endforeach()
    if(supported)
      set(CRESSET_COMPILED_ISAS ${isa})
    endif()
  endforeach()
else()
  set(CRESSET_COMPILED_ISAS ${CRESSET_CPU_ISAS})
  foreach(isa IN LISTS CRESSET_COMPILED_ISAS)
    if(NOT isa IN_LIST names)
      message(FATAL_ERROR "CRESSET_CPU_ISAS: all, native, or a list of ${known} was required; '${isa}' was given.")
    endif()
  endforeach()
endif()

set(enumerators "")
set(rows "")
set(compiled "")
set(in_each "")
set(chosen "")
set(table "")
set(numbers "")
set(targets "")
set(number 0)
foreach(isa IN LISTS names)
  string(SUBSTRING ${isa} 0 1 first)
  string(TOUPPER ${first} first)
  string(SUBSTRING ${isa} 1 -1 rest)
  string(APPEND enumerators "${first}${rest}, ")
  list(TRANSFORM ${isa}_FEATURES REPLACE "(.+)" "__builtin_cpu_supports(\"\\1\")" OUTPUT_VARIABLE asks)
  list(PREPEND asks true)
  list(JOIN asks " && " supported)
  string(APPEND rows "{\"${isa}\", [] { return ${supported}\\; }}, ")
  string(APPEND numbers "#define CRESSET_ISA_NUMBER_${isa} ${number}\n")
  string(APPEND targets "#if CRESSET_ISA_NUMBER == ${number}\n#define CRESSET_ISA_VECTOR_BYTES ${${isa}_VECTOR}\n")
  if(${isa}_TARGET)
    string(APPEND targets "#pragma GCC target(\"${${isa}_TARGET}\")\n")
  endif()
  foreach(has IN LISTS ${isa}_HAS)
    string(APPEND targets "#define CRESSET_ISA_HAS_${has} 1\n")
  endforeach()
  string(APPEND targets "#endif\n")
  math(EXPR number "${number} + 1")
  if(NOT isa IN_LIST CRESSET_COMPILED_ISAS)
    string(APPEND table "nullptr, ")
    continue()
  endif()
  string(APPEND compiled "Isa::${first}${rest}, ")
  string(APPEND in_each " namespace ${isa} { __VA_ARGS__ }")
  string(APPEND table "&::cresset::cpu::${isa}::NAME, ")
  if(chosen STREQUAL "")
    set(chosen "${isa}::NAME")
  else()
    set(chosen "isa() == Isa::${first}${rest} ? ${isa}::NAME : ${chosen}")
  endif()
endforeach()
string(REPLACE "\\;" ";" rows "${rows}")
file(CONFIGURE OUTPUT ${CRESSET_GEN_DIR}/src/cpu/compiled_isas.h @ONLY CONTENT
"// Written by cmake/CressetIsas.cmake; see backends/cpu/isa.h.
#pragma once
#define CRESSET_ISAS @enumerators@
#define CRESSET_ISA_ROWS @rows@
#define CRESSET_COMPILED_ISAS @compiled@
#define CRESSET_IN_EACH_ISA(...)@in_each@
#define CRESSET_FOR_THIS_PROCESSOR(NAME) ((void)isa(), @chosen@)
#define CRESSET_ISA_TABLE(NAME) {@table@}
")
file(CONFIGURE OUTPUT ${CRESSET_GEN_DIR}/src/cpu/isa_target.h @ONLY CONTENT
"// Written by cmake/CressetIsas.cmake; see backends/cpu/isa_begin.h, which includes it.
@numbers@@targets@")
