# An installed frit serves a C program through pkg-config and C and C++ programs through CMake.
source "$(dirname "$0")/lib.sh"

BUILD=$(dirname "$FRIT")
PREFIX=$WORK/prefix
command -v cmake >/dev/null && cmake --install "$BUILD" --prefix "$PREFIX" >"$WORK/install.log" 2>&1 ||
  { cat "$WORK/install.log"; exit 1; }
export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig:$(echo "$PREFIX"/lib/*/pkgconfig)
VERSION=$(sed -nE 's/^project\(frit VERSION ([0-9.]+).*/\1/p' "$ROOT/CMakeLists.txt")

write_consumer() { # C source that is C++ too
  cat >consumer.c <<'C'
#include <frit.h>
#include <stdio.h>
int main(void) { return puts(frit_version()) < 0; }
C
  cp consumer.c consumer.cpp
}

case_pkg_config() {
  write_consumer
  # shellcheck disable=SC2046
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror consumer.c -o consumer $(pkg-config --cflags --libs frit)
  run ./consumer
  expect_status 0
  expect_out "$VERSION"
  [ "$(pkg-config --modversion frit)" = "$VERSION" ] || fail "frit.pc gives another version"
}

case_cmake() {
  write_consumer
  cat >CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.25)
project(consumer C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(frit 0.1 REQUIRED)
foreach(language c cpp)
  add_executable(consumer_${language} consumer.${language})
  target_compile_options(consumer_${language} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(consumer_${language} PRIVATE frit::frit)
endforeach()
C
  run cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$PREFIX"
  expect_status 0
  run cmake --build build
  expect_status 0
  run build/consumer_c
  expect_out "$VERSION"
  run build/consumer_cpp
  expect_out "$VERSION"
}

case_newer_version_refused() {
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(c C)\nfind_package(frit 99 REQUIRED)\n' >CMakeLists.txt
  run cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$PREFIX"
  expect_status 1
  expect_err 'requested version "99"'
}

case_example() {
  # shellcheck disable=SC2046
  cc -std=gnu11 -Wall -Wextra -Wpedantic -Werror "$ROOT/examples/chat.c" -o chat $(pkg-config --cflags --libs frit)
  "$FRIT" synth tiny.gguf --arch=tiny --type=f32 --context=256 2>err
  run ./chat tiny.gguf "hello there"
  expect_status 0
  [ -s out ] || fail "no answer"
  run ./chat nothing.gguf hello
  expect_status 1
  expect_err "nothing.gguf"
}

run_case pkg_config
run_case example
run_case cmake
run_case newer_version_refused
finish
