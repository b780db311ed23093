#!/usr/bin/env bash
# tools/test.sh [STAGE...]: the stages of `make test` (all by default) against what tools/setup.sh
# installed. Prints failures and skips as they come, then a table, and as its last line the totals:
# "N passed, N failed, N skipped". Full output of each stage: build/test/STAGE.log.
#
# A stage that is a suite of its own ends with such a line and is counted by it; one that ends
# without it, with an error status and no failure, or over its time counts as one failure. Any other
# stage is one case.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PWD/.cache/node/bin:$PATH

wanted=("$@")
logs=build/test
mkdir -p "$logs"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/frit-test.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
mkdir -m 700 "$tmp/run"
export XDG_RUNTIME_DIR=$tmp/run # the Vulkan drivers warn without one
export FRIT_TEST_TMP=$tmp TMPDIR=$tmp # what a test leaves behind when it is stopped goes too
export FRIT_MODEL=$PWD/.cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
dawn=$PWD/.cache/webgpu/libwebgpu_dawn.so
wgpu=$PWD/.cache/webgpu/libwgpu_native.so
swiftshader=/usr/lib/chromium/vk_swiftshader_icd.json
lavapipe=$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd.*json' | head -1)
passed=0 failed=0 skipped=0
table=()

selected() { [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]; }

# count NAME SECONDS PASSED FAILED SKIPPED [NOTE]
count() {
  passed=$((passed + $3)) failed=$((failed + $4)) skipped=$((skipped + $5))
  table+=("$(printf '%-18s %6d %6d %7d %6ds  %s' "$1" "$3" "$4" "$5" "$2" "${6:-}")")
}

# stage NAME suite|step LIMIT_SECONDS COMMAND...
stage() {
  local name=$1 kind=$2 limit=$3 log=$logs/$1.log t0=$SECONDS status line p=0 f=0 s=0 note=
  shift 3
  selected "$name" || return 0
  echo "== $name"
  timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
  status=$?
  grep -E '^(FAIL|SKIP) ' "$log"
  line=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
  if [ $kind = step ]; then
    if [ $status = 0 ]; then p=1; else f=1; fi
  elif [ -n "$line" ]; then
    read -r p _ f _ s _ <<<"${line//,/}"
    if [ $status != 0 ] && [ "$f" = 0 ]; then f=1 note="exit status $status"; fi
  else
    p=$(grep -c '^ok ' "$log") f=1 note="died with status $status"
  fi
  # The library and its driver are installed, so a device that does not open is a failure.
  if grep -q '^SKIP .*: device gpu: ' "$log"; then f=$((f + 1)) note="the GPU did not open"; fi
  [ $status != 124 ] || note="over its limit of $limit s"
  [ "$f" = 0 ] || { echo "-- the end of $log:"; tail -n 40 "$log" | sed -E 's/^([0-9]+ passed)/   \1/'; }
  count "$name" $((SECONDS - t0)) "$p" "$f" "$s" "$note"
}

# share NAME SUITES...: says which of the C tests a stage on a browser's software GPU leaves out.
share() {
  [ "${FRIT_FULL:-}" != 1 ] && selected "$1" || return 0
  local what="the C tests but for ${*:2}: many minutes on a software GPU; FRIT_FULL=1 runs them"
  echo "SKIP $1: $what"
  count "$1 rest" 0 0 0 1 "left out: FRIT_FULL=1"
}

# gpu NAME LIBRARY DRIVER: the tests on one WebGPU library over one software driver.
gpu() {
  selected "$1" || return 0
  if [ ! -e "$2" ] || [ ! -e "$3" ]; then
    local what="$2 or its driver ${3:-lavapipe} is not there"
    echo "SKIP $1: $what"
    if [ "$(uname -m)" = x86_64 ] || [ "${REQUIRE_GPU:-}" = 1 ]; then
      count "$1" 0 0 1 0 "$what"
    else
      count "$1" 0 0 0 1 "$what"
    fi
    return
  fi
  stage "$1" suite 1800 env FRIT_WEBGPU="$2" VK_DRIVER_FILES="$3" \
    build/native/frit-tests --device gpu
}

stage build-native step 900 make native
stage layers suite 60 tools/check_layers.py --self-test
stage layers-src step 60 tools/check_layers.py
stage format step 120 tools/lint.sh --format
stage tidy step 900 tools/lint.sh --tidy
stage cpu suite 600 build/native/frit-tests --device cpu
gpu dawn "$dawn" "$swiftshader"
gpu wgpu "$wgpu" "$lavapipe"
stage cli suite 900 tools/run_cli_tests.sh
stage build-asan step 900 make asan
stage asan suite 900 env ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 \
  UBSAN_OPTIONS=print_stacktrace=1 build/asan/frit-tests --device cpu
stage build-msan step 900 make msan
stage msan suite 900 build/msan/frit-tests --device cpu --quick
stage build-tsan step 900 make tsan
stage tsan suite 900 build/tsan/frit-tests --device cpu --quick hw. engine. faults.

if [ "$(uname -m)" != aarch64 ]; then
  stage build-arm step 600 make arm
  stage arm suite 600 tools/arm_tests.sh
fi

stage build-wasm step 900 make wasm
stage wasm suite 600 node web/test/c_tests.mjs node --quick
stage chromium-cpu suite 600 node web/test/c_tests.mjs chromium --quick
# Of the C tests, those that show the browser's back end and each kind of kernel: all of them take over
# 20 minutes on the software adapter there (FRIT_FULL=1 runs them).
chromium_gpu=(hw. kernels.element_wise kernels.rmsnorm kernels.rope kernels.kv_append kernels.attention
  kernels.argmax kernels.sample_small roles.qkv_mv roles.attn_split roles.attn_combine engine.mixed)
[ "${FRIT_FULL:-}" != 1 ] || chromium_gpu=()
stage chromium-gpu suite 1800 node web/test/c_tests.mjs chromium --quick --device gpu "${chromium_gpu[@]}"
share chromium-gpu "${chromium_gpu[@]}"
stage web-size suite 60 node web/test/imports.mjs
stage web-node suite 200 node web/test/smoke.mjs node cpu
stage web-cpu suite 200 node web/test/smoke.mjs chromium cpu
stage web-gpu suite 400 node web/test/smoke.mjs chromium gpu tiny
stage core-node suite 100 node web/test/core_tests.mjs node cpu
stage core-cpu suite 200 node web/test/core_tests.mjs chromium cpu
stage core-gpu suite 900 node web/test/core_tests.mjs chromium gpu
# Firefox: the same over lavapipe, with 16-bit floats, without subgroups, and another shader compiler.
firefox() { stage "$1" suite "$2" env VK_DRIVER_FILES="$lavapipe" node "web/test/$3" firefox "${@:4}"; }
firefox_gpu=(hw. kernels. roles. engine.mixed)
[ "${FRIT_FULL:-}" != 1 ] || firefox_gpu=()
firefox firefox-cpu 600 c_tests.mjs --quick
firefox firefox-gpu 1800 c_tests.mjs --quick --device gpu "${firefox_gpu[@]}"
share firefox-gpu "${firefox_gpu[@]}"
firefox firefox-smoke 400 smoke.mjs gpu
firefox firefox-core 400 core_tests.mjs gpu
stage build-site step 400 tools/site.sh site
stage package suite 120 node web/test/package_node.mjs
stage node-webgpu suite 900 env VK_DRIVER_FILES="$swiftshader" node web/test/node_webgpu.mjs
stage package-web suite 600 node web/test/package_browser.mjs
stage install suite 300 node web/test/package_install.mjs
stage site suite 900 node web/test/site.mjs
firefox firefox-site-cpu 600 chat_page.mjs cpu
firefox firefox-site 900 chat_page.mjs gpu
# WebKit has no WebGPU here: its CPU path.
stage webkit suite 600 node web/test/c_tests.mjs webkit --quick
stage webkit-core suite 200 node web/test/core_tests.mjs webkit cpu
stage webkit-site suite 600 node web/test/chat_page.mjs webkit cpu

printf '\n%-18s %6s %6s %7s %7s\n' stage passed failed skipped time
printf '%s\n' "${table[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
