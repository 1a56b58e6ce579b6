# Runs tools/opgen over the operator tables. At configure time it asks for the list of outputs, at build time it writes
# them; opgen leaves files whose content has not changed alone, so only what changed is compiled again.
#
# Sets CRESSET_GEN_DIR, and for each group CRESSET_GEN_<GROUP> (core-header becomes CORE_HEADER).

set(CRESSET_GEN_DIR ${PROJECT_BINARY_DIR}/gen)
set(groups core-header ops autograd cpu cpu-isa cpu-isa-choosing python data)
foreach(group IN LISTS groups)
  string(TOUPPER ${group} variable)
  string(REPLACE "-" "_" variable ${variable})
  set(CRESSET_GEN_${variable} "")
endforeach()
file(MAKE_DIRECTORY ${CRESSET_GEN_DIR}/include ${CRESSET_GEN_DIR}/src)

set(opgen ${PROJECT_SOURCE_DIR}/tools/opgen)
set(tables ${PROJECT_SOURCE_DIR}/src/ops)
if(NOT EXISTS ${opgen}/__main__.py)
  return()
endif()

# Reading folders is right here: a new table is picked up without another list of families.
file(GLOB opgen_inputs CONFIGURE_DEPENDS ${tables}/*.toml ${tables}/*.txt ${opgen}/*.py ${opgen}/*/*.py)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${opgen_inputs})

execute_process(
  COMMAND ${Python_EXECUTABLE} -B ${opgen} outputs --tables ${tables} --out ${CRESSET_GEN_DIR}
  OUTPUT_VARIABLE lines RESULT_VARIABLE status ERROR_VARIABLE errors OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "tools/opgen could not read the operator tables:\n${errors}")
endif()
string(REPLACE "\n" ";" lines "${lines}")
set(outputs "")
foreach(line IN LISTS lines)
  string(REPLACE "\t" ";" fields "${line}")
  list(GET fields 0 group)
  list(GET fields 1 path)
  if(NOT group IN_LIST groups)
    message(FATAL_ERROR "tools/opgen names an unknown group of outputs: ${line}")
  endif()
  cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${CRESSET_GEN_DIR} NORMALIZE)
  string(TOUPPER ${group} variable)
  string(REPLACE "-" "_" variable ${variable})
  list(APPEND CRESSET_GEN_${variable} ${path})
  list(APPEND outputs ${path})
endforeach()

# The sources of a group are its .cpp files; headers and data need no target.
foreach(group IN ITEMS OPS AUTOGRAD CPU CPU_ISA CPU_ISA_CHOOSING PYTHON)
  set(CRESSET_GEN_${group}_SOURCES ${CRESSET_GEN_${group}})
  list(FILTER CRESSET_GEN_${group}_SOURCES INCLUDE REGEX "\\.cpp$")
endforeach()

add_custom_command(
  OUTPUT ${CRESSET_GEN_DIR}/opgen.stamp
  BYPRODUCTS ${outputs}
  COMMAND ${Python_EXECUTABLE} -B ${opgen} generate --tables ${tables} --out ${CRESSET_GEN_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch ${CRESSET_GEN_DIR}/opgen.stamp
  DEPENDS ${opgen_inputs} ${PROJECT_SOURCE_DIR}/include/cresset/core/scalar_type.h
  COMMENT "Generating operators from src/ops"
  VERBATIM)
# Sources of the tree see headers that change for a new row only when one of them calls it (tools/opgen/tree_view.py).
set(CRESSET_TREE_INCLUDE ${CRESSET_GEN_DIR}/tree)
set(seen ${CRESSET_GEN_CORE_HEADER})
list(FILTER seen INCLUDE REGEX "/(functions_[a-z0-9_]+\\.h|tensor_methods\\.inc)$")
list(TRANSFORM seen REPLACE "^${CRESSET_GEN_DIR}/include/" "${CRESSET_TREE_INCLUDE}/")
set(patterns "")
foreach(folder IN ITEMS src include tests/cpp benchmarks)
  list(APPEND patterns ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${folder}/*.h)
endforeach()
file(GLOB_RECURSE tree_sources CONFIGURE_DEPENDS ${patterns})
add_custom_command(
  OUTPUT ${CRESSET_GEN_DIR}/tree.stamp
  BYPRODUCTS ${seen}
  COMMAND ${Python_EXECUTABLE} -B ${opgen} tree --out ${CRESSET_GEN_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch ${CRESSET_GEN_DIR}/tree.stamp
  DEPENDS ${CRESSET_GEN_DIR}/opgen.stamp ${tree_sources}
  COMMENT "Choosing what the tree sees of the operators"
  VERBATIM)
add_custom_target(cresset_opgen DEPENDS ${CRESSET_GEN_DIR}/opgen.stamp ${CRESSET_GEN_DIR}/tree.stamp)
