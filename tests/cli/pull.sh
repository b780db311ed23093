# frit pull against a server on loopback with the usual faults (pull_server.py).
source "$(dirname "$0")/lib.sh"

python3 "$ROOT/tests/cli/pull_server.py" "$WORK/port" &
on_exit+=("kill $! 2>/dev/null")
for _ in $(seq 100); do [ -e "$WORK/port" ] || sleep 0.1; done
BASE=http://127.0.0.1:$(cat "$WORK/port") || exit 1
export no_proxy=127.0.0.1

get() { python3 -c 'import sys, urllib.request
sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' "$BASE$1"; }
# Sets the server's version; the file want is what it serves from now on.
serve() { get "/set/$1" >want; }
sha_of() { sha256sum "$1" | cut -d' ' -f1; }
requests() { get /log >requests; }
expect_whole() { # FILE: equals want, and nothing else is left
  expect_status 0
  expect_same "$1" want
  expect_no_file "$1.part" "$1.part.tag"
}
# Leaves half of /$1/m.bin behind.
half() {
  run "$FRIT" pull "$BASE/$1/m.bin" --retries 0
  expect_status 1
  expect_no_file m.bin
  [ "$(stat -c %s m.bin.part)" = 150000 ] || fail "m.bin.part is not half of the file"
}

case_whole() {
  serve v1
  run "$FRIT" pull "$BASE/plain/m.bin"
  expect_whole m.bin
  [ "$(cat out)" = m.bin ] || fail "standard output is not the path"
  expect_err "$(sha_of want)"
}
case_progress_in_a_terminal() {
  serve v1
  run script -qec "$FRIT pull $BASE/plain/m.bin" log
  expect_whole m.bin
  expect_out "100 %"
  expect_out "0.3/0.3 MB"
  rm m.bin
  run script -qec "$FRIT pull -q $BASE/plain/m.bin" log
  expect_whole m.bin
  if grep -q % out; then fail "--quiet draws a bar"; fi
}
case_json_and_sha256() {
  serve v1
  run "$FRIT" pull "$BASE/plain/m.bin" --json -o x.bin --sha256 "$(sha_of want | tr a-f A-F)"
  expect_whole x.bin
  python3 - "$(sha_of want)" <<'P'
import json, sys
got = json.load(open("out"))
assert got == {"path": "x.bin", "bytes": 300000, "resumed": 0, "sha256": sys.argv[1],
               "fetched": True}, got
P
}
case_out_folder_and_decoded_name() {
  serve v1
  mkdir d
  run "$FRIT" pull "$BASE/plain/a%20b.bin?x=1" --out d
  expect_whole "d/a b.bin"
}
case_resumed_by_the_next_call() {
  serve v1
  half cut
  expect_err "goes on from there"
  run "$FRIT" pull "$BASE/cut/m.bin" --json --sha256 "$(sha_of want)"
  expect_whole m.bin
  expect_out '"resumed":150000'
  requests
  grep -qF '/cut/m.bin bytes=150000- "v1"' requests || fail "no range was asked for"
}
case_resumed_by_itself() {
  serve v1
  run "$FRIT" pull "$BASE/cut/m.bin"
  expect_whole m.bin
}
case_many_cuts() {
  serve v1
  run "$FRIT" pull "$BASE/cutall/m.bin" --retries 1
  expect_status 1
  [ "$(stat -c %s m.bin.part)" = 100000 ] || fail "two tries did not bring two pieces"
  run "$FRIT" pull "$BASE/cutall/m.bin" --retries 2
  expect_status 1
  run "$FRIT" pull "$BASE/cutall/m.bin" --retries 0
  expect_whole m.bin
}
case_changed_on_the_server() {
  serve v1
  half cut
  serve v2
  run "$FRIT" pull "$BASE/plain/m.bin" # another address: starts anew
  expect_whole m.bin
  rm m.bin
  serve v3
  half cut
  get /calm/v4 >want
  run "$FRIT" pull "$BASE/cut/m.bin" --json
  expect_whole m.bin
  expect_out '"resumed":0'
}
case_changed_and_if_range_ignored() {
  serve v1
  half liar
  get /calm/v2 >want
  run "$FRIT" pull "$BASE/liar/m.bin"
  expect_whole m.bin
}
case_server_without_ranges() {
  serve v1
  half norange
  run "$FRIT" pull "$BASE/norange/m.bin" --json
  expect_whole m.bin
  expect_out '"resumed":0'
}
case_no_validator() {
  serve v1
  run "$FRIT" pull "$BASE/notag/m.bin" --retries 0
  expect_status 1
  expect_no_file m.bin m.bin.part m.bin.part.tag
  run "$FRIT" pull "$BASE/notag/m.bin"
  expect_whole m.bin
}
case_part_is_complete() { # stopped between the last byte and the renaming
  serve v1
  cp want m.bin.part
  printf '%s\n"v1"\n' "$BASE/plain/m.bin" >m.bin.part.tag
  run "$FRIT" pull "$BASE/plain/m.bin"
  expect_whole m.bin
}
case_part_is_too_long() {
  serve v1
  { cat want; echo more; } >m.bin.part
  printf '%s\n"v1"\n' "$BASE/plain/m.bin" >m.bin.part.tag
  run "$FRIT" pull "$BASE/plain/m.bin"
  expect_whole m.bin
}
case_part_of_unknown_origin() {
  serve v1
  echo junk >m.bin.part
  run "$FRIT" pull "$BASE/plain/m.bin"
  expect_whole m.bin
  rm m.bin
  echo junk >m.bin.part
  echo junk >m.bin.part.tag
  run "$FRIT" pull "$BASE/plain/m.bin"
  expect_whole m.bin
}
case_wrong_sha256() {
  serve v1
  local wrong=$(printf '0%.0s' $(seq 64))
  run "$FRIT" pull "$BASE/plain/m.bin" --sha256 "$wrong"
  expect_status 1
  expect_err "$(sha_of want)"
  expect_err "$wrong"
  expect_no_file m.bin m.bin.part m.bin.part.tag
}
case_already_there() {
  serve v1
  echo mine >m.bin
  run "$FRIT" pull "$BASE/plain/m.bin"
  expect_status 0
  expect_err "there already"
  run "$FRIT" pull "$BASE/plain/m.bin" --sha256 "$(sha_of m.bin)"
  expect_status 0
  run "$FRIT" pull "$BASE/plain/m.bin" --sha256 "$(sha_of want)"
  expect_status 1
  expect_err "--force"
  [ "$(cat m.bin)" = mine ] || fail "m.bin was touched"
  requests
  [ ! -s requests ] || fail "the server was asked"
  run "$FRIT" pull "$BASE/plain/m.bin" --force
  expect_whole m.bin
}
case_http_errors() {
  local code
  for code in 404 403 500; do
    run "$FRIT" pull "$BASE/status/$code" --retries 0 -o m.bin
    expect_status 1
    expect_err "frit: pull: $BASE/status/$code: the server answered $code"
    [ "$(wc -l <err)" = 1 ] || fail "more than one line on standard error"
    expect_no_file m.bin m.bin.part m.bin.part.tag
  done
}
case_error_keeps_what_is_there() {
  serve v1
  half cut
  cp m.bin.part before
  sed -i "1s|.*|$BASE/status/503|" m.bin.part.tag
  run "$FRIT" pull "$BASE/status/503" --retries 0 -o m.bin
  expect_status 1
  expect_same m.bin.part before
}
case_busy_server() {
  serve v1
  run "$FRIT" pull "$BASE/busy/m.bin"
  expect_whole m.bin
}
case_redirect() {
  serve v1
  run "$FRIT" pull "$BASE/go/go/plain/m.bin"
  expect_whole m.bin
}
case_empty_file() {
  run "$FRIT" pull "$BASE/empty/m.bin"
  expect_status 0
  [ -e m.bin ] && [ ! -s m.bin ] || fail "no empty file"
  expect_no_file m.bin.part m.bin.part.tag
}
case_hf() {
  serve v1
  export FRIT_HF_BASE=$BASE/
  run "$FRIT" pull hf:some/repo/sub/m+1.bin
  expect_whole m+1.bin
  run "$FRIT" pull hf:some/repo@abc/m.bin
  expect_whole m.bin
  requests
  grep -q '^/some/repo/resolve/main/sub/m%2B1.bin ' requests || fail "wrong address: $(cat requests)"
  grep -q '^/some/repo/resolve/abc/m.bin ' requests || fail "wrong address: $(cat requests)"
}
case_nobody_there() {
  run "$FRIT" pull http://127.0.0.1:1/m.bin
  expect_status 1
  expect_err "frit: pull: http://127.0.0.1:1/m.bin: "
  expect_no_file m.bin m.bin.part m.bin.part.tag
}
case_cannot_write() {
  serve v1
  run "$FRIT" pull "$BASE/plain/m.bin" -o no/such/folder/m.bin
  expect_status 1
  expect_err "no/such/folder/m.bin.part: No such file or directory"
}
case_special_files() { # are not replaced
  serve v1
  mkfifo pipe
  run "$FRIT" pull "$BASE/plain/m.bin" -o pipe --force
  expect_status 1
  expect_err "pipe: not a regular file"
  [ -p pipe ] || fail "the pipe is gone"
  expect_no_file pipe.part
  "$FRIT" pull "$BASE/plain/m.bin" <&- 2>&- >/dev/null
  expect_same m.bin want
}
case_disk_full() { # a limit on file sizes fails the same write
  serve v1
  (
    ulimit -f 100
    trap '' XFSZ
    run "$FRIT" pull "$BASE/plain/m.bin"
    echo "$status" >status
  )
  status=$(cat status)
  expect_status 1
  expect_err "m.bin.part: File too large after 0.1 MB"
  expect_no_file m.bin
  run "$FRIT" pull "$BASE/plain/m.bin" --json
  expect_whole m.bin
  expect_out '"resumed":102400'
}
case_two_at_once() {
  serve v1
  half cut
  exec 8<>m.bin.part
  flock 8
  run "$FRIT" pull "$BASE/cut/m.bin"
  expect_status 1
  expect_err "another download is writing it"
  [ "$(stat -c %s m.bin.part)" = 150000 ] || fail "the other one's bytes are gone"
  flock -u 8
  run "$FRIT" pull "$BASE/cut/m.bin"
  expect_whole m.bin
}
case_usage() {
  local args
  for args in "" "ftp://127.0.0.1/x" "hf:owner/file" "hf:a//b/c" "hf:a/b@/c" "$BASE/plain/" "a b" \
    "--sha256 12 $BASE/plain/m.bin" "--retries -1 $BASE/plain/m.bin" "--what $BASE/plain/m.bin"; do
    # shellcheck disable=SC2086
    run "$FRIT" pull $args
    expect_status 2
    expect_err "frit: pull: "
    [ "$(wc -l <err)" = 1 ] || fail "more than one line on standard error"
  done
  run "$FRIT" pull --out '' "$BASE/plain/m.bin"
  expect_status 2
  expect_err "--out is empty"
  run "$FRIT" pull --help
  expect_status 0
  expect_out "Usage: frit pull"
}

for name in $(declare -F | sed -n 's/^declare -f case_//p'); do run_case "$name"; done
finish
