# make install: the library, frit.h, the command, frit.pc and CMake package files (frit::frit).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(frit PROPERTIES POSITION_INDEPENDENT_CODE ON)

install(TARGETS frit EXPORT frit-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/frit.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET frit-cli)
  install(TARGETS frit-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/frit)
install(EXPORT frit-targets NAMESPACE frit:: DESTINATION ${package_dir})
configure_package_config_file(cmake/frit-config.cmake.in ${PROJECT_BINARY_DIR}/frit-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/frit-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/frit-config.cmake
  ${PROJECT_BINARY_DIR}/frit-config-version.cmake DESTINATION ${package_dir})

# frit.pc finds its prefix from its own place, so that an installed tree can be moved and
# `cmake --install --prefix` needs no second configure.
file(RELATIVE_PATH FRIT_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/frit.pc.in ${PROJECT_BINARY_DIR}/frit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/frit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
