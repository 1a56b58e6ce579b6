# One folder under src/ is one layer: an object library whose objects are merged into libcresset.

# cresset_layer(NAME SOURCES file... [UNITY size] [OPTIONS flag...] [DEFINITIONS name=value...])
#   adds the object library cresset_NAME. Private headers are included as "folder/file.h", public ones as
#   <cresset/folder/file.h>; generated ones lie beside them.
#   UNITY: builds with CRESSET_UNITY compile so many sources as one. Names in anonymous namespaces must therefore differ
#   within a layer; other builds have the target check_unity, which reads the sources of each such layer as one (those
#   that tools/opgen writes keep the rule by construction).
function(cresset_layer name)
  cmake_parse_arguments(arg "" "UNITY" "SOURCES;OPTIONS;DEFINITIONS" ${ARGN})
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target cresset_${name})
  set_property(GLOBAL APPEND PROPERTY CRESSET_LAYERS ${target})
  add_library(${target} OBJECT ${arg_SOURCES})
  cresset_private_target(${target})
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  if(arg_UNITY AND CRESSET_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_UNITY})
  elseif(arg_UNITY)
    list(FILTER arg_SOURCES EXCLUDE REGEX "^${CRESSET_GEN_DIR}/")
    if(NOT arg_SOURCES)
      return()
    endif()
    add_library(${target}_as_one OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
    cresset_private_target(${target}_as_one)
    target_compile_options(${target}_as_one PRIVATE -fsyntax-only)
    set_target_properties(${target}_as_one PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0 CXX_COMPILER_LAUNCHER "")
    if(NOT TARGET check_unity)
      add_custom_target(check_unity)
    endif()
    add_dependencies(check_unity ${target}_as_one)
  endif()
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
