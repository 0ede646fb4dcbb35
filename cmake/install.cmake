# cmake --install: library, headers, pkg-config file, CMake package, program, man page, completion.
include(CMakePackageConfigHelpers)

# Components are Debian packages (cmake/package.cmake); without --component all are installed.
install(TARGETS psifold EXPORT psifold-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS psi_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
if(TARGET psi_mpi)
  install(TARGETS psi_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()
install(DIRECTORY include/psifold DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

# Wherever the file is put, the prefix is the same way up from it.
set(PKGCONFIG_FOLDER ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG /prefix/${PKGCONFIG_FOLDER} /prefix)
configure_file(cmake/psifold.pc.in psifold.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/psifold.pc DESTINATION ${PKGCONFIG_FOLDER}
  COMPONENT development)

set(PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/psifold)
install(EXPORT psifold-targets NAMESPACE psifold:: DESTINATION ${PACKAGE_FOLDER}
  COMPONENT development)
configure_package_config_file(cmake/psifold-config.cmake.in psifold-config.cmake
  INSTALL_DESTINATION ${PACKAGE_FOLDER})
write_basic_package_version_file(psifold-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/psifold-config.cmake
  ${PROJECT_BINARY_DIR}/psifold-config-version.cmake DESTINATION ${PACKAGE_FOLDER}
  COMPONENT development)

# The man page is a frame around what the program's own option tables say.
add_custom_command(OUTPUT psifold.1
  COMMAND sh -c "sed -e 's/@VERSION@/${PROJECT_VERSION}/' '${PROJECT_SOURCE_DIR}/docs/psifold.1.in' > psifold.1 && '$<TARGET_FILE:psi_command>' --man >> psifold.1"
  DEPENDS psi_command ${PROJECT_SOURCE_DIR}/docs/psifold.1.in VERBATIM)
add_custom_target(man ALL DEPENDS psifold.1)
install(FILES ${PROJECT_BINARY_DIR}/psifold.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
  COMPONENT command)
install(FILES completions/psifold.bash RENAME psifold
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
