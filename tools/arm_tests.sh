#!/usr/bin/env bash
# tools/arm_tests.sh: the tests of build/arm under qemu's user mode. The CPU kernels on a processor without
# and on one with the dot product, told which forms must have been chosen; on the latter also the other
# kernels, the engine, the small reference models, and the demo model's answer in f32. Ends with the line
# "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
totals=(0 0 0)

# on CPU FORMS FILTER...
on() {
  local cpu=$1 forms=$2 line n
  shift 2
  echo "-- $cpu, $forms: $*"
  FRIT_TEST_SHORT=1 FRIT_TEST_ISA=$forms qemu-aarch64-static -L /usr/aarch64-linux-gnu -cpu "$cpu" \
    build/arm/frit-tests --device cpu --quick "$@" >"$out" 2>&1
  sed '$d' "$out"
  line=$(tail -n 1 "$out")
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    for n in 0 1 2; do totals[n]=$((totals[n] + BASH_REMATCH[n + 1])); done
  else
    echo "$line"
    echo "FAIL arm.$cpu: ended without its totals"
    totals[1]=$((totals[1] + 1))
  fi
}

on cortex-a57 neon cpu_kernels. engine.default_precision
on max neon-dot cpu_kernels. kernels. roles. engine. quant. not_numbers. reference.tiny reference.demo_none
echo "${totals[0]} passed, ${totals[1]} failed, ${totals[2]} skipped"
[ "${totals[1]}" = 0 ]
