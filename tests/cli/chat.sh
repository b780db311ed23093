# frit chat: -p, a conversation through a pipe, and one in a terminal (chat_pty.py).
source "$(dirname "$0")/lib.sh"

TINY=$WORK/tiny.gguf
"$FRIT" synth "$TINY" --arch=tiny --type=f32 --context=4096 2>"$WORK/synth.log" ||
  { cat "$WORK/synth.log"; exit 1; }
export XDG_STATE_HOME=$WORK/state
pty() { python3 "$ROOT/tests/cli/chat_pty.py" "$@"; }

case_one_answer() {
  run "$FRIT" chat "$TINY" -p hello --max 5 --device cpu --seed 1 --stats
  expect_status 0
  expect_err "device  cpu: "
  grep -Eq '^load +[0-9.]+ s$' err || fail "no load time"
  grep -Eq '^prompt +[0-9]+ tokens, [0-9.]+ s, [0-9.]+ tokens/s$' err || fail "no prompt speed"
  grep -Eq '^answer +[0-9]+ tokens, [0-9.]+ s, [0-9.]+ tokens/s$' err || fail "no decode speed"
  cp out first
  printf hello >prompt
  run "$FRIT" chat "$TINY" -p - --max 5 --device cpu --seed 1 <prompt
  expect_same out first
  [ ! -s err ] || fail "standard error is not empty without --stats"
}
case_system_changes_the_answer() {
  run "$FRIT" chat "$TINY" -p hello --max 20 --device cpu --temp 0
  cp out plain
  run "$FRIT" chat "$TINY" -p hello --max 20 --device cpu --temp 0 --system 'be brief'
  expect_status 0
  cmp -s out plain && fail "--system has no effect"
  return 0
}
case_usage() {
  run "$FRIT" chat
  expect_status 2
  expect_err "MODEL is missing"
  run "$FRIT" chat "$TINY" -p a --file b
  expect_status 2
  run "$FRIT" chat nothing.gguf -p a
  expect_status 1
  expect_err "nothing.gguf"
}
case_too_long() {
  printf 'word %.0s' $(seq 2000) >long
  run "$FRIT" chat "$TINY" --file long --device cpu --context 512
  expect_status 1
  expect_err "the context holds 512"
}
case_pipe() {
  printf 'hello\n/system be kind\nhow\\\nare you\n/what\n\n/exit\nnever\n' >lines
  run "$FRIT" chat "$TINY" --max 4 --device cpu --temp 0 <lines
  expect_status 0
  expect_out "there is no command /what"
}
case_terminal() {
  local line
  LC_ALL=C pty "$FRIT" chat "$TINY" --device cpu --max 8 >log 2>&1 || { tail -c 2000 log; fail "the terminal's talk"; }
  for line in 'first\040question' 'one\012two' 'one\012two.three' 'say:\040pasted\012été\040now'; do
    grep -qxF "$line" "$XDG_STATE_HOME/frit/history" ||
      { cat "$XDG_STATE_HOME/frit/history"; fail "the history lacks $line"; }
  done
  [ "$(stat -c %a "$XDG_STATE_HOME/frit/history")" = 600 ] || fail "others can read the history"
}

for name in $(declare -F | sed -n 's/^declare -f case_//p'); do run_case "$name"; done
finish
