# Toolchain of the browser build: Debian's clang-19, lld-19, wasi-libc and compiler-rt for wasm32.
# No Emscripten, no Asyncify, no threads. WASI serves as the C library's floor only: the modules
# import a handful of its calls, which web/core answers.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_AR llvm-ar-19)
set(CMAKE_RANLIB llvm-ranlib-19)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "--target=wasm32-wasi --sysroot=/usr -msimd128 -mbulk-memory -ffunction-sections -fdata-sections")
set(CMAKE_EXE_LINKER_FLAGS_INIT "--target=wasm32-wasi --sysroot=/usr -fuse-ld=/usr/bin/wasm-ld-19")
set(FRIT_WASM ON)
