# One folder under src/ is one layer: an object library. The objects of one or several layers make a shared library.

# cresset_layer(NAME SOURCES file... [LIGHT file...] [COMPLETE file...] [UNITY size] [OPTIONS flag...] [DEFINITIONS name=value...] [LINK target...])
#   adds the object library cresset_NAME; LINK names what its sources need beside this tree. Private headers are included as
#   "folder/file.h", public ones as <cresset/folder/file.h>; generated ones lie beside them.
#   LIGHT: sources that run once for a graph or a process, or whose time goes into what they call. They are compiled as
#   cresset_NAME_light with the options CRESSET_LIGHT, -O1, which takes a quarter less time than -O2 (docs/design/build-time.md).
#   COMPLETE: light sources that see every function and method of the operator table, not the part that the tree calls
#   (docs/design/operator-table.md), as cresset_NAME_complete.
#   UNITY: builds with CRESSET_UNITY compile so many sources as one. Names in anonymous namespaces must therefore differ
#   within a layer, and each source must include what it needs (cresset_unity).
set(CRESSET_LIGHT $<$<CONFIG:Release>:-O1>)
function(cresset_layer name)
  cmake_parse_arguments(arg "" "UNITY" "SOURCES;LIGHT;COMPLETE;OPTIONS;DEFINITIONS;LINK" ${ARGN})
  set(target cresset_${name})
  set_property(GLOBAL APPEND PROPERTY CRESSET_OBJECTS_${name} ${target})
  add_library(${target} OBJECT ${arg_SOURCES})
  cresset_private_target(${target})
  target_link_libraries(${target} PRIVATE ${arg_LINK})
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  if(arg_UNITY)
    cresset_unity(${target} ${arg_UNITY})
  endif()
  if(arg_LIGHT)
    cresset_layer(${name}_light SOURCES ${arg_LIGHT} UNITY ${arg_UNITY} OPTIONS ${arg_OPTIONS} ${CRESSET_LIGHT}
      DEFINITIONS ${arg_DEFINITIONS} LINK ${arg_LINK})
    set_property(GLOBAL APPEND PROPERTY CRESSET_OBJECTS_${name} ${target}_light)
  endif()
  if(arg_COMPLETE)
    cresset_layer(${name}_complete SOURCES ${arg_COMPLETE} UNITY ${arg_UNITY} OPTIONS ${arg_OPTIONS} ${CRESSET_LIGHT}
      DEFINITIONS ${arg_DEFINITIONS} LINK ${arg_LINK})
    set_property(GLOBAL APPEND PROPERTY CRESSET_OBJECTS_${name} ${target}_complete)
  endif()
endfunction()

# cresset_add_layers(TARGET LAYER...): the objects of these layers become part of the target.
function(cresset_add_layers target)
  foreach(layer IN LISTS ARGN)
    get_property(objects GLOBAL PROPERTY CRESSET_OBJECTS_${layer})
    foreach(library IN LISTS objects)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${library}>)
    endforeach()
  endforeach()
endfunction()

# cresset_unity(TARGET SIZE): several sources as one with CRESSET_UNITY. The way that this build does not go is checked by a target of
# its own, which reads the hand-written sources only: check_alone, one by one and without precompiled headers; or check_unity, all as one.
function(cresset_unity target size)
  if(CRESSET_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
    set(check check_alone)
  else()
    set(check check_unity)
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^${CRESSET_GEN_DIR}/")
  if(NOT sources)
    return()
  endif()
  add_library(${target}_${check} OBJECT EXCLUDE_FROM_ALL ${sources})
  cresset_private_target(${target}_${check})
  get_target_property(libraries ${target} LINK_LIBRARIES)
  target_link_libraries(${target}_${check} PRIVATE ${libraries})
  target_compile_options(${target}_${check} PRIVATE -fsyntax-only)
  set_target_properties(${target}_${check} PROPERTIES CXX_COMPILER_LAUNCHER "")
  if(NOT CRESSET_UNITY)
    set_target_properties(${target}_${check} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
  if(NOT TARGET ${check})
    add_custom_target(${check})
  endif()
  add_dependencies(${check} ${target}_${check})
endfunction()

# cresset_library(NAME LAYERS layer... [LINK target...]): the shared library NAME from the objects of these layers. LINK: libraries of
# this tree by their targets, and what the layers need beside it, of which users see nothing.
function(cresset_library name)
  cmake_parse_arguments(arg "" "" "LAYERS;LINK" ${ARGN})
  set(target lib${name})
  add_library(${target} SHARED)
  cresset_add_layers(${target} ${arg_LAYERS})
  foreach(library IN LISTS arg_LINK)
    if(library MATCHES "^libcresset")
      target_link_libraries(${target} PUBLIC ${library})
    else()
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}>)
    endif()
  endforeach()
  # A library beside it is found in the build tree, in a prefix and in the wheel: they lie in one folder everywhere.
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    BUILD_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN")
  if(NOT SKBUILD)
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  endif()
  if(NOT CRESSET_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-Bsymbolic-functions -Wl,--gc-sections -Wl,--no-undefined)
    # Relative relocations in a tenth of the space, where the linker and the C library know the form.
    if(CRESSET_PACKED_RELOCATIONS)
      target_link_options(${target} PRIVATE -Wl,-z,pack-relative-relocs)
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY CRESSET_SHARED_LIBRARIES ${target})
endfunction()

# Instruments a target when its room is asked for: the layer of cresset_LAYER, cresset_LAYER_part and cresset_test_LAYER, or python.
function(cresset_sanitize target)
  if(target MATCHES "^_C")
    set(room python)
  else()
    string(REGEX REPLACE "^cresset_(test_)?([a-z]+).*$" "\\2" room ${target})
  endif()
  if(NOT CRESSET_SANITIZE_ROOMS OR room IN_LIST CRESSET_SANITIZE_ROOMS)
    target_compile_options(${target} PRIVATE ${CRESSET_SANITIZE_OPTIONS})
  endif()
endfunction()

# What every target compiled from this tree needs: flags, include folders, generated files first.
function(cresset_private_target target)
  set(seen ${CRESSET_TREE_INCLUDE})
  if(target MATCHES "_complete$")
    set(seen "")
  endif()
  target_link_libraries(${target} PRIVATE cresset_flags cresset_dependencies)
  cresset_sanitize(${target})
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
    ${seen} ${CRESSET_GEN_DIR}/include ${CRESSET_GEN_DIR}/src)
  if(TARGET cresset_opgen)
    add_dependencies(${target} cresset_opgen)
  endif()
endfunction()

# cresset_precompile(TARGET HEADER...): headers that nearly every source of the target includes, also of its LIGHT ones; or, without
# headers, those of cresset_ops, where the flags are the same. Sources must not rely on them: builds without CRESSET_PCH do not have them. So
# neither names of operators (<cresset/ops/functions_*.h>) nor private headers, whose names clash with local ones.
function(cresset_precompile target)
  if(NOT CRESSET_PCH OR NOT TARGET ${target})
    return()
  endif()
  set(from cresset_ops)
  if(ARGN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set(from ${target})
  else()
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
  if(TARGET ${target}_light)
    target_precompile_headers(${target}_light REUSE_FROM ${from})
  endif()
endfunction()
