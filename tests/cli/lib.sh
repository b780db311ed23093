# For tests of the command line: `source "$(dirname "$0")/lib.sh"`, then one `run_case NAME` a case,
# each a function case_NAME run in a subshell in its own empty folder ($PWD) with errors checked.
# $FRIT is the command, $ROOT the repository, $MODEL the demo model (may not exist).
#
#   run CMD...            runs it; $status, and its output in the files out and err
#   expect_status N       $status is N
#   expect_out TEXT       out contains TEXT (a fixed string); expect_err: the same for err
#   expect_no_file PATH   nothing is there
#   fail TEXT...          ends the case as failed; skip TEXT... as skipped
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
FRIT=${FRIT:-$ROOT/build/native/frit}
MODEL=${FRIT_MODEL:-$ROOT/.cache/models/SmolLM2-135M-Instruct.Q4_1.gguf}
SUITE=$(basename "$0" .sh)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/frit-cli.XXXXXX")
on_exit=()
failures=0
cleanup() {
  local c
  for c in "${on_exit[@]}"; do eval "$c"; done
  rm -rf "$WORK"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

fail() {
  echo "  $*"
  exit 1
}
skip() {
  echo "SKIP cli.$SUITE.$case_name: $*"
  exit 77
}
show() {
  local f
  for f in out err; do
    [ ! -s "$f" ] || head -c 2000 "$f" | sed "s/^/  $f: /"
  done
}
run() {
  status=0
  "$@" >out 2>err || status=$?
}
expect_status() {
  [ "$status" = "$1" ] || { show; fail "exit status is $status, not $1"; }
}
expect_out() {
  grep -qF -- "$1" out || { show; fail "standard output lacks '$1'"; }
}
expect_err() {
  grep -qF -- "$1" err || { show; fail "standard error lacks '$1'"; }
}
expect_no_file() {
  local f
  for f in "$@"; do [ ! -e "$f" ] || fail "$f is there and should not be"; done
}
expect_same() {
  cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# Runs case_NAME and prints its line. The script's exit status is set by finish.
run_case() {
  case_name=$1
  mkdir -p "$WORK/$1"
  local code=0
  # errexit does not reach into a command whose status is tested, hence the plain subshell.
  set +e
  (
    set -eu
    cd "$WORK/$1"
    "case_$1"
  )
  code=$?
  case $code in
    0) echo "ok   cli.$SUITE.$1" ;;
    77) ;;
    *)
      failures=$((failures + 1))
      echo "FAIL cli.$SUITE.$1"
      ;;
  esac
}
finish() { exit $((failures > 0)); }
