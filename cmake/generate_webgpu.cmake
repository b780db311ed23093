# The standard webgpu.h, for src/hw/webgpu*.c alone. Without it they compile to a stub that says
# so, and frit runs on the CPU. tools/setup.sh fetches the header to .cache/webgpu.
if(FRIT_WASM)
  return()
endif()
set(FRIT_WEBGPU_INCLUDE "" CACHE PATH "Folder of webgpu.h (default: .cache/webgpu)")
set(webgpu_include ${FRIT_WEBGPU_INCLUDE})
if(NOT webgpu_include)
  set(webgpu_include ${PROJECT_SOURCE_DIR}/.cache/webgpu)
endif()
if(EXISTS ${webgpu_include}/webgpu.h)
  # Deferred: the library does not exist yet where this file is included.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL target_include_directories frit SYSTEM PRIVATE
    [[${webgpu_include}]])")
  # A build tree finds the libraries that tools/setup.sh fetched.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL target_compile_definitions frit PRIVATE
    FRIT_HAVE_WEBGPU_H [[FRIT_WEBGPU_DIR=\"${PROJECT_SOURCE_DIR}/.cache/webgpu\"]])")
elseif(FRIT_WEBGPU_INCLUDE)
  message(FATAL_ERROR "FRIT_WEBGPU_INCLUDE: no webgpu.h in ${FRIT_WEBGPU_INCLUDE}")
else()
  message(NOTICE "frit: no webgpu.h (tools/setup.sh webgpu fetches it): built without GPU support")
endif()
