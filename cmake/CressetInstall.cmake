# Installation: a normal prefix with `cmake --install`, or the inside of the wheel under scikit-build-core.
include(CMakePackageConfigHelpers)

if(SKBUILD)
  # The wheel holds everything inside the package: cresset/lib, cresset/include.
  set(libdir lib)
  set(includedir include)
else()
  set(libdir ${CMAKE_INSTALL_LIBDIR})
  set(includedir ${CMAKE_INSTALL_INCLUDEDIR})
  set_target_properties(cresset PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endif()

install(TARGETS cresset EXPORT CressetTargets LIBRARY DESTINATION ${libdir})
install(DIRECTORY include/cresset DESTINATION ${includedir})
install(DIRECTORY ${CRESSET_GEN_DIR}/include/cresset DESTINATION ${includedir})
if(EXISTS ${PROJECT_SOURCE_DIR}/compat/torch/include)
  # Under their own root: only projects that ask for the compatibility headers see them.
  install(DIRECTORY compat/torch/include/ DESTINATION ${includedir}/cresset_compat)
endif()

install(EXPORT CressetTargets NAMESPACE Cresset:: DESTINATION ${libdir}/cmake/Cresset)
configure_package_config_file(cmake/CressetConfig.cmake.in ${PROJECT_BINARY_DIR}/CressetConfig.cmake
  INSTALL_DESTINATION ${libdir}/cmake/Cresset PATH_VARS includedir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CressetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/CressetConfig.cmake ${PROJECT_BINARY_DIR}/CressetConfigVersion.cmake
  DESTINATION ${libdir}/cmake/Cresset)

# The prefix is found from the place of the file, so an installed tree can be moved.
file(RELATIVE_PATH pc_prefix /p/${libdir}/pkgconfig /p)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/cresset.pc.in ${PROJECT_BINARY_DIR}/cresset.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cresset.pc DESTINATION ${libdir}/pkgconfig)
