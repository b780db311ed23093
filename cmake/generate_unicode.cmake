# Character classes for the tokenizers.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_command(OUTPUT ${FRIT_GENERATED_DIR}/unicode_runs.h
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/gen_unicode.py
    ${FRIT_GENERATED_DIR}/unicode_runs.h
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/gen_unicode.py VERBATIM)
list(APPEND FRIT_GENERATED ${FRIT_GENERATED_DIR}/unicode_runs.h)
