# What the build generates, from texts that people edit. Each later part appends its outputs to
# FRIT_GENERATED (C files compiled into the library) and writes under FRIT_GENERATED_DIR.
set(FRIT_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
set(FRIT_GENERATED "")
file(MAKE_DIRECTORY ${FRIT_GENERATED_DIR})
file(GLOB FRIT_GENERATE_PARTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/generate_*.cmake)
foreach(part ${FRIT_GENERATE_PARTS})
  include(${part})
endforeach()
