# Installation: a normal prefix with `cmake --install`, or the inside of the wheel under scikit-build-core.
include(CMakePackageConfigHelpers)

if(SKBUILD)
  # The wheel holds everything inside the package: cresset/lib, cresset/include.
  set(libdir lib)
  set(includedir include)
else()
  set(libdir ${CMAKE_INSTALL_LIBDIR})
  set(includedir ${CMAKE_INSTALL_INCLUDEDIR})
endif()

install(TARGETS ${shared_libraries} EXPORT CressetTargets LIBRARY DESTINATION ${libdir})
install(DIRECTORY include/cresset DESTINATION ${includedir})
install(DIRECTORY ${CRESSET_GEN_DIR}/include/cresset DESTINATION ${includedir})
# For generators of device backends. `cmake --install DIR --component declarations` needs the target cresset_opgen only.
install(FILES ${CRESSET_GEN_DIR}/data/RegistrationDeclarations.h ${CRESSET_GEN_DIR}/data/operators.json
  DESTINATION ${includedir}/cresset/ops COMPONENT declarations)
# PyTorch's header names, under their own root: only projects that ask for them see them. The forwarders are written from
# compat/torch/headers.txt and the list of operators, which the generator has made by now.
set(compat_dir ${CRESSET_GEN_DIR}/compat)
add_custom_command(OUTPUT ${CRESSET_GEN_DIR}/compat.stamp
  COMMAND Python::Interpreter ${PROJECT_SOURCE_DIR}/compat/torch/make_headers.py
    --out ${compat_dir} --operators ${CRESSET_GEN_DIR}/data/operators.json
    --functions ${CRESSET_GEN_DIR}/data/functions.json
  COMMAND ${CMAKE_COMMAND} -E touch ${CRESSET_GEN_DIR}/compat.stamp
  DEPENDS ${PROJECT_SOURCE_DIR}/compat/torch/headers.txt ${PROJECT_SOURCE_DIR}/compat/torch/make_headers.py
    ${CRESSET_GEN_DIR}/opgen.stamp
  COMMENT "compat: headers with PyTorch's names" VERBATIM)
add_custom_target(cresset_compat ALL DEPENDS ${CRESSET_GEN_DIR}/compat.stamp)
add_dependencies(libcresset cresset_compat)
install(DIRECTORY compat/torch/include/ ${compat_dir}/ DESTINATION ${includedir}/cresset_compat)

install(EXPORT CressetTargets NAMESPACE Cresset:: DESTINATION ${libdir}/cmake/Cresset)
set(components core ${CRESSET_LIBRARIES})
configure_package_config_file(cmake/CressetConfig.cmake.in ${PROJECT_BINARY_DIR}/CressetConfig.cmake
  INSTALL_DESTINATION ${libdir}/cmake/Cresset PATH_VARS includedir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/CressetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/CressetConfig.cmake ${PROJECT_BINARY_DIR}/CressetConfigVersion.cmake
  cmake/CressetComponents.cmake
  DESTINATION ${libdir}/cmake/Cresset)
# find_package(Torch): the version of PyTorch whose names the compatibility headers have.
file(STRINGS compat/torch/include/cresset_compat/torch.h torch_version REGEX "define TORCH_VERSION \"")
string(REGEX REPLACE ".*\"(.*)\"" "\\1" torch_version "${torch_version}")
configure_package_config_file(cmake/TorchConfig.cmake.in ${PROJECT_BINARY_DIR}/TorchConfig.cmake
  INSTALL_DESTINATION ${libdir}/cmake/Torch PATH_VARS includedir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TorchConfigVersion.cmake
  VERSION ${torch_version} COMPATIBILITY AnyNewerVersion)
install(FILES ${PROJECT_BINARY_DIR}/TorchConfig.cmake ${PROJECT_BINARY_DIR}/TorchConfigVersion.cmake
  DESTINATION ${libdir}/cmake/Torch)
# What projects look for in the folder of `torch.__file__`: in the wheel, and of a prefix only on demand.
set(in_folder_of_torch COMPONENT in_folder_of_torch)
if(NOT SKBUILD)
  list(APPEND in_folder_of_torch EXCLUDE_FROM_ALL)
endif()
foreach(file TorchConfig.cmake TorchConfigVersion.cmake)
  configure_file(compat/torch/cmake/${file} ${PROJECT_BINARY_DIR}/in_folder_of_torch/${file} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/in_folder_of_torch/${file} DESTINATION share/cmake/Torch ${in_folder_of_torch})
endforeach()
install(FILES cmake/libtorch_python.ld DESTINATION lib RENAME libtorch_python.so ${in_folder_of_torch})

# The prefix is found from the place of the file, so an installed tree can be moved.
file(RELATIVE_PATH pc_prefix /p/${libdir}/pkgconfig /p)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
function(cresset_pkg_config pc_name pc_description pc_requires pc_libs)
  configure_file(cmake/cresset.pc.in ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${libdir}/pkgconfig)
endfunction()
cresset_pkg_config(cresset "${PROJECT_DESCRIPTION}" "" "${CRESSET_LINK_FLAGS}")
cresset_pkg_config(cresset-core "Tensors, operators and derivatives of Cresset, without kernels" "" "-lcresset")
if(TARGET libcresset_cpu)
  cresset_pkg_config(cresset-cpu "Cresset's kernels for the CPU" cresset-core "${CRESSET_CPU_FLAGS}")
endif()
if(TARGET libcresset_ir)
  cresset_pkg_config(cresset-ir "Graphs and scripts of Cresset" cresset-core "-lcresset_ir")
endif()
if(TARGET libcresset_nn)
  cresset_pkg_config(cresset-nn "Modules and optimisers of Cresset in C++" cresset-core "-lcresset_nn")
endif()
if(TARGET libcresset_distributed)
  cresset_pkg_config(cresset-distributed "Stores and process groups of Cresset" cresset-core "-lcresset_distributed")
endif()

# The command finds the library beside itself; scripts of a wheel lie in bin/, the package in site-packages.
if(TARGET cresset_cli)
  if(SKBUILD)
    set(python_lib ../lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
    set_target_properties(cresset_cli PROPERTIES INSTALL_RPATH
      "$ORIGIN/${python_lib}/site-packages/cresset/lib;$ORIGIN/${python_lib}/dist-packages/cresset/lib")
    install(TARGETS cresset_cli RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR})
  else()
    set_target_properties(cresset_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${libdir}")
    install(TARGETS cresset_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endif()

# The package in a wheel; src/python puts together the one of the source tree.
if(TARGET _C AND SKBUILD)
  set(build_info_includes "[_package + \"/include\"]")
  set(build_info_compat "[_package + \"/include/cresset_compat\"]")
  set(build_info_libraries "[_package + \"/lib\"]")
  configure_file(cmake/build_info.py.in ${PROJECT_BINARY_DIR}/_build_info.py @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/_build_info.py DESTINATION .)
  install(DIRECTORY ${CRESSET_GEN_DIR}/data/stubs/cresset/ DESTINATION .)
  set_target_properties(${python_modules} PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/lib")
  install(TARGETS ${python_modules} LIBRARY DESTINATION .)
endif()
