#!/usr/bin/env bash
# tools/run_cli_tests.sh [FRIT] [NAME...]: runs tests/cli/NAME.sh (all of them by default) against
# the command FRIT (default build/native/frit). Each case of each script is one line, "ok   cli.…",
# "FAIL cli.…" or "SKIP cli.…"; a script that ends with an error outside its cases is a failure too.
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

FRIT=$(realpath -m "${1:-build/native/frit}")
export FRIT
shift || true
passed=0 failed=0 skipped=0
for script in tests/cli/*.sh; do
  name=$(basename "$script" .sh)
  [ "$name" != lib ] || continue
  [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
  log=$(mktemp)
  timeout -k 10 600 bash "$script" </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  good=$(grep -c '^ok   cli\.' "$log") bad=$(grep -c '^FAIL cli\.' "$log")
  skip=$(grep -c '^SKIP cli\.' "$log")
  rm -f "$log"
  if [ "$status" != 0 ] && [ "$bad" = 0 ] || [ $((good + bad + skip)) = 0 ]; then
    echo "FAIL cli.$name: ended with status $status after $good cases"
    bad=1
  fi
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
