# The Python package: one library over the public headers, beside the modules that call it by
# ctypes. pyproject.toml builds this target; `make wheel` packs it with all that it needs.
file(GLOB NATIVE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/native/*.c)
add_library(psi_python SHARED ${NATIVE_SOURCES})
set_target_properties(psi_python PROPERTIES OUTPUT_NAME psifold_flat
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
target_link_libraries(psi_python PRIVATE psi_objects)
install(TARGETS psi_python LIBRARY DESTINATION psifold COMPONENT python EXCLUDE_FROM_ALL)
