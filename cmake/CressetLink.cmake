# How this tree links its own libraries: the targets that the installed package has, and the flags for those who have no CMake.

add_library(Cresset::core ALIAS libcresset)
foreach(library IN LISTS CRESSET_LIBRARIES)
  string(REPLACE "cpu" "cpu_library" name ${library})
  add_library(Cresset::${name} ALIAS libcresset_${library})
  set_target_properties(libcresset_${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
set_target_properties(libcresset PROPERTIES EXPORT_NAME core)
include(CressetComponents)
# The flags of these targets name files, from which CMake does not see what is built first.
if(TARGET Cresset::cpu)
  add_dependencies(Cresset::cpu libcresset_cpu)
  set_property(TARGET Cresset::cpu PROPERTY IMPORTED_GLOBAL ON)
endif()
add_dependencies(Cresset::cresset ${shared_libraries})
# Projects around this one see them as well; and compilers warn about our own headers.
set_target_properties(Cresset::cresset PROPERTIES IMPORTED_GLOBAL ON SYSTEM OFF)

# For pkg-config and `cresset config`.
set(CRESSET_CPU_FLAGS "-Wl,--push-state,--no-as-needed,-lcresset_cpu,--pop-state")
set(CRESSET_LINK_FLAGS "-lcresset")
if(TARGET libcresset_cpu)
  string(APPEND CRESSET_LINK_FLAGS " ${CRESSET_CPU_FLAGS}")
endif()
set(optional "")
foreach(library IN ITEMS distributed nn ir)
  if(TARGET libcresset_${library})
    string(APPEND optional ",-lcresset_${library}")
  endif()
endforeach()
if(optional)
  string(APPEND CRESSET_LINK_FLAGS " -Wl,--push-state,--as-needed${optional},--pop-state")
endif()
