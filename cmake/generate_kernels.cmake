# Kernel texts as C strings, and the C side of their params structs.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB_RECURSE FRIT_WGSL CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/*.wgsl)
add_custom_command(OUTPUT ${FRIT_GENERATED_DIR}/kernel_texts.c
  BYPRODUCTS ${FRIT_GENERATED_DIR}/params_step.h
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/gen_kernels.py
    ${PROJECT_SOURCE_DIR}/src/kernels ${FRIT_GENERATED_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch ${FRIT_GENERATED_DIR}/kernel_texts.c
  DEPENDS ${FRIT_WGSL} ${PROJECT_SOURCE_DIR}/tools/gen_kernels.py VERBATIM)
list(APPEND FRIT_GENERATED ${FRIT_GENERATED_DIR}/kernel_texts.c)
add_custom_target(frit_kernel_texts DEPENDS ${FRIT_GENERATED_DIR}/kernel_texts.c)
