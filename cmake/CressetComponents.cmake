# Cresset::cpu and Cresset::cresset over the libraries Cresset::core, Cresset::cpu_library, Cresset::ir, Cresset::nn and Cresset::distributed; read by the
# build itself and by find_package. Flags and the libraries between them are one item, so that CMake neither moves nor merges parts.

# The kernels register themselves and nothing calls them by name: the linker must keep their library.
if(TARGET Cresset::cpu_library AND NOT TARGET Cresset::cpu)
  add_library(Cresset::cpu INTERFACE IMPORTED)
  set_property(TARGET Cresset::cpu PROPERTY INTERFACE_LINK_LIBRARIES
    "-Wl,--push-state,--no-as-needed,\"$<TARGET_FILE:Cresset::cpu_library>\",--pop-state" Cresset::core)
endif()

# All of them: kernels always, graphs and the C++ front end where a program uses them.
if(NOT TARGET Cresset::cresset)
  add_library(Cresset::cresset INTERFACE IMPORTED)
  set(cresset_optional "")
  foreach(cresset_component IN ITEMS distributed nn ir)
    if(TARGET Cresset::${cresset_component})
      string(APPEND cresset_optional ",\"$<TARGET_FILE:Cresset::${cresset_component}>\"")
    endif()
  endforeach()
  if(cresset_optional)
    set_property(TARGET Cresset::cresset PROPERTY INTERFACE_LINK_LIBRARIES "-Wl,--push-state,--as-needed${cresset_optional},--pop-state")
  endif()
  if(TARGET Cresset::cpu)
    set_property(TARGET Cresset::cresset APPEND PROPERTY INTERFACE_LINK_LIBRARIES Cresset::cpu)
  endif()
  set_property(TARGET Cresset::cresset APPEND PROPERTY INTERFACE_LINK_LIBRARIES Cresset::core)
  # For those who read the property instead of linking.
  get_target_property(cresset_includes Cresset::core INTERFACE_INCLUDE_DIRECTORIES)
  set_property(TARGET Cresset::cresset PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${cresset_includes}")
endif()
