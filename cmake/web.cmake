# The two modules of the browser build: frit.wasm, a library for web/core without files or main, and
# frit-tests.wasm, the test program, whose memory is shared so that another worker can serve its GPU
# calls while it waits (tools/web_tests.mjs).
# The stack first, so that running over it traps.
set(FRIT_WASM_MEMORY -Wl,--stack-first,-z,stack-size=524288,--max-memory=4294967296)

file(GLOB FRIT_WEB CONFIGURE_DEPENDS src/web/*.c)
if(FRIT_WEB)
  add_executable(frit-wasm ${FRIT_WEB})
  set_target_properties(frit-wasm PROPERTIES OUTPUT_NAME frit.wasm)
  target_link_libraries(frit-wasm PRIVATE frit_internal)
  target_link_options(frit-wasm PRIVATE -mexec-model=reactor -Wl,--strip-all ${FRIT_WASM_MEMORY})
endif()

if(TARGET frit-tests)
  # Tests are written where size_t has 64 bits; their sizes are small.
  set_property(SOURCE ${FRIT_TESTS} ${FRIT_TEST_HELPERS} APPEND PROPERTY
    COMPILE_OPTIONS -Wno-shorten-64-to-32)
  set_target_properties(frit-tests PROPERTIES OUTPUT_NAME frit-tests.wasm)
  target_link_options(frit-tests PRIVATE -Wl,--strip-all,--stack-first,-z,stack-size=1048576
    -Wl,--import-memory,--shared-memory,--no-check-features,--max-memory=2147483648)
endif()
