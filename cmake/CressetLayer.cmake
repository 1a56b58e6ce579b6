# One folder under src/ is one layer: an object library whose objects are merged into libcresset.

# cresset_layer(NAME SOURCES file... [OPTIONS flag...] [DEFINITIONS name=value...])
#   adds the object library cresset_NAME. Private headers are included as "folder/file.h", public ones as
#   <cresset/folder/file.h>; generated ones lie beside them.
function(cresset_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;OPTIONS;DEFINITIONS" ${ARGN})
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target cresset_${name})
  add_library(${target} OBJECT ${arg_SOURCES})
  cresset_private_target(${target})
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  set_property(GLOBAL APPEND PROPERTY CRESSET_LAYERS ${target})
endfunction()

# What every target compiled from this tree needs: flags, include folders, generated files first.
function(cresset_private_target target)
  target_link_libraries(${target} PRIVATE cresset_flags cresset_dependencies)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
    ${CRESSET_GEN_DIR}/include ${CRESSET_GEN_DIR}/src)
  if(TARGET cresset_opgen)
    add_dependencies(${target} cresset_opgen)
  endif()
endfunction()

# cresset_precompile(TARGET HEADER...): headers that nearly every source of the target includes; or, without headers, those of
# cresset_ops, where the flags are the same. Sources must not rely on them: builds without CRESSET_PCH do not have them. So
# neither names of operators (<cresset/ops/functions_*.h>) nor private headers, whose names clash with local ones.
function(cresset_precompile target)
  if(NOT CRESSET_PCH OR NOT TARGET ${target})
    return()
  endif()
  if(ARGN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM cresset_ops)
  endif()
endfunction()
