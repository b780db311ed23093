# Every command but pull and chat: usage errors, bad files, and the JSON that scripts read. A synthetic
# model of 70 kB stands in for a real one.
source "$(dirname "$0")/lib.sh"

TINY=$WORK/tiny.gguf
"$FRIT" synth "$TINY" --arch=tiny --type=q4_0 --context=256 2>"$WORK/synth.log" ||
  { cat "$WORK/synth.log"; exit 1; }

json() { python3 -c "import json, sys; d = json.load(open('out')); $1" || { show; fail "$1"; }; }
one_error() { # STATUS TEXT: one line on standard error, with TEXT
  expect_status "$1"
  expect_err "$2"
  [ "$(wc -l <err)" = 1 ] || { show; fail "more than one line on standard error"; }
  grep -q '^frit: ' err || { show; fail "the line does not begin with 'frit: '"; }
  [ ! -s out ] || { show; fail "something on standard output"; }
}

case_front() {
  run "$FRIT" --version
  expect_status 0
  expect_out "frit $(sed -nE 's/^project\(frit VERSION ([0-9.]+).*/\1/p' "$ROOT/CMakeLists.txt")"
  run "$FRIT" help
  expect_status 0
  expect_out "Commands:"
  run "$FRIT"
  expect_status 2
  run "$FRIT" what
  one_error 2 "there is no command 'what'"
  run "$FRIT" help what
  one_error 2 "there is no command 'what'"
}
case_help_of_each() {
  local name
  for name in $("$FRIT" help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
    run "$FRIT" help "$name"
    expect_status 0
    expect_out "frit $name "
    expect_out "Exit status:"
    cp out first
    run "$FRIT" "$name" --help
    expect_status 0
    expect_same out first
  done
}
case_usage() {
  while IFS='|' read -r args text; do
    # shellcheck disable=SC2086
    run "$FRIT" $args
    one_error 2 "$text"
  done <<U
complete|MODEL is missing
complete $TINY|no text
complete $TINY -p|needs a value
complete $TINY x -p a|'x' is one argument too many
complete $TINY -p a --what|there is no option --what
complete $TINY -p a --file b|exclude each other
complete $TINY -p a -n -1|--tokens takes a whole number
complete $TINY -p a -n 1.5|--tokens takes a whole number
complete $TINY -p a -n 5000000000|--tokens takes a whole number
chat $TINY -p a --seed 4294967295|--seed takes a whole number
complete $TINY -p a -n 0x10|--tokens takes a whole number
complete $TINY -p a --temp nan|--temp takes a number from 0 to 100
complete $TINY -p a --temp -1|--temp takes a number from 0 to 100
complete $TINY -p a --top-p 1.01|--top-p takes a number from 0 to 1
complete $TINY -p a --threads 2000|--threads takes a whole number
complete $TINY -p a --device tpu|--device takes auto, cpu, gpu or gpu:N
complete $TINY -p a --device gpu:|--device takes auto
complete $TINY -p a --device gpu:1x|--device takes auto
complete $TINY -p a --precision f8|--precision takes f32 or auto
complete $TINY -p a --level all|--level takes none or role
complete $TINY -p a --fusions-off norm_qkv,nonsense|there is no fusion 'nonsense'
complete $TINY -p a --limit-binding 12Q|--limit-binding takes a whole number
bench $TINY -p 1,,2|--prompt takes up to 8 whole numbers
bench $TINY -n x|--tokens takes up to 8 whole numbers
bench $TINY -r 0|--repetitions takes a whole number
bench $TINY --json --csv|exclude each other
bench $TINY --levels some|--levels takes none, role or both
perplexity $TINY|FILE is missing
logits $TINY -p a|--out is missing
synth x.gguf|--arch is missing
synth x.gguf --arch big|there is no 'big'
synth x.gguf --arch tiny --type q9|no weights of type 'q9'
synth x.gguf --arch tiny --mix ffn|'ffn' is not PART=TYPE
explain $TINY --rows 0|--rows takes a whole number
devices x|'x' is one argument too many
U
}
case_bad_files() {
  local name
  head -c 3000 "$TINY" >short.gguf
  head -c $(($(stat -c %s "$TINY") - 100)) "$TINY" >cut.gguf
  echo text >text.gguf
  : >empty.gguf
  mkdir folder
  for name in none.gguf folder short.gguf cut.gguf text.gguf empty.gguf; do
    run "$FRIT" complete "$name" -p a --device cpu
    one_error 1 "$name"
    run "$FRIT" tokenize "$name" -p a
    one_error 1 "$name"
    run "$FRIT" inspect "$name" --device cpu
    one_error 1 "$name"
    run "$FRIT" explain "$name" --device cpu
    one_error 1 "$name"
  done
  mkfifo pipe.gguf # nobody writes into it
  run timeout 20 "$FRIT" tokenize pipe.gguf -p a
  one_error 1 "pipe.gguf: not a regular file"
  run "$FRIT" complete "$TINY" --file nothing.txt --device cpu
  one_error 1 "nothing.txt"
  run "$FRIT" perplexity "$TINY" nothing.txt --device cpu
  one_error 1 "nothing.txt"
}
case_no_library() {
  run "$FRIT" devices --webgpu ./no-such-library.so
  expect_status 0
  expect_out "no GPU: "
  expect_out "cpu "
  run "$FRIT" complete "$TINY" -p a -n 1 --device gpu --webgpu ./no-such-library.so
  one_error 1 "no-such-library.so"
  run "$FRIT" complete "$TINY" -p a -n 1 --webgpu ./no-such-library.so --stats
  expect_status 0
  expect_err "no GPU: "
  expect_err "device  cpu: "
}
case_devices_json() {
  run "$FRIT" devices --json
  expect_status 0
  json 'assert d["cpu"]["threads"] >= 1 and isinstance(d["gpus"], list)'
}
case_tokenize() {
  run "$FRIT" tokenize "$TINY" -p 'hello <|im_end|> you' --json
  expect_status 0
  json 'assert len(d["tokens"]) == len(d["pieces"]) and "<|im_end|>" in d["pieces"]'
  json 'assert "".join(d["pieces"]) == "hello <|im_end|> you"'
  run "$FRIT" tokenize "$TINY" -p 'hello <|im_end|> you' --json --no-special
  json 'assert "<|im_end|>" not in d["pieces"]'
  printf 'hello\r\n\377' >bytes
  run "$FRIT" tokenize "$TINY" --file bytes --json
  expect_status 0
  json 'assert "".join(d["pieces"]).rstrip("\ufffd") == "hello\r\n"'
  cp out want
  run "$FRIT" tokenize "$TINY" -p - --json <bytes
  expect_same out want
}
case_inspect() {
  run "$FRIT" inspect "$TINY" --json --tensors --device cpu
  expect_status 0
  json 'assert d["metadata"]["general.architecture"] == "llama" and d["model"]["layers"] == 2'
  json 'assert d["memory"][0]["device"] == "cpu" and d["memory"][0]["fits"] and d["memory"][0]["context"] == 256'
  json 'assert sum(t["bytes"] for t in d["tensors"]) == sum(t["bytes"] for t in d["types"])'
  run "$FRIT" inspect "$TINY" --tensors --device cpu
  expect_status 0
  expect_out "token_embd.weight"
  expect_out "general.architecture = llama"
  grep -qE '; fits in the [0-9.]+ [kMG]B available$' out || { show; fail "does not say whether it fits"; }
}
case_complete() {
  run "$FRIT" complete "$TINY" -p 'hello' -n 8 --ignore-eos --device cpu --json
  expect_status 0
  json 'assert len(d["tokens"]) == 8 and d["finish_reason"] == "length" and d["prompt_tokens"]'
  json 't = d["timings"]; assert t["decode_n"] == 7 and t["submits"] == 8 and t["load_s"] > 0'
  json 'open("text", "w").write(d["text"] + "\n")'
  run "$FRIT" complete "$TINY" -p 'hello' -n 8 --ignore-eos --device cpu --threads 1
  expect_status 0
  expect_same out text
  run "$FRIT" complete "$TINY" -p hello -n 8 --ignore-eos --device cpu --batch 2 --json
  cp out one
  run "$FRIT" complete "$TINY" -p hello -n 8 --ignore-eos --device cpu --batch 3 --json
  python3 -c 'import json; a, b = (json.load(open(f)) for f in ("one", "out")); assert a["tokens"] == b["tokens"]' ||
    fail "the batch changes the tokens"
}
case_seed() {
  local i
  for i in 5 5 6; do
    run "$FRIT" complete "$TINY" -p 'hello' -n 20 --ignore-eos --device cpu --temp 1 --seed $i --json
    expect_status 0
    json 'open("'$i'.ids", "a").write(repr(d["tokens"]) + "\n")'
  done
  [ "$(sort -u 5.ids | wc -l)" = 1 ] || fail "the same seed gives another text"
  [ "$(sort -u 5.ids 6.ids | wc -l)" = 2 ] || fail "another seed gives the same text"
}
case_context() {
  local long
  long=$(printf 'w %.0s' $(seq 400))
  run "$FRIT" complete "$TINY" -p "$long" --device cpu
  one_error 1 "longer than the context of 256"
  run "$FRIT" complete "$TINY" -p hello --device cpu --context 300
  one_error 1 "a context of 300 is more than the model's own 256"
  run "$FRIT" complete "$TINY" -p hello --ignore-eos --device cpu --context 20 --json
  expect_status 0
  json 'assert d["finish_reason"] == "context" and len(d["tokens"]) + len(d["prompt_tokens"]) >= 20'
}
case_perplexity() {
  printf 'the quick brown fox jumps over the lazy dog. %.0s' $(seq 12) >text
  run "$FRIT" perplexity "$TINY" text --device cpu --precision f32 --json
  expect_status 0
  json 'import math; assert 3 < d["nll"] < 10 and abs(d["ppl"] - math.exp(d["nll"])) < 1e-6 * d["ppl"]'
  run "$FRIT" perplexity "$TINY" text --device cpu --context 64 --json
  json 'assert d["windows"] == -(-d["tokens"] // 64) and d["predicted"] == d["tokens"] - d["windows"]'
  run "$FRIT" perplexity "$TINY" text --device cpu --context 1
  one_error 1 "--context takes 2 or more"
  : >empty
  run "$FRIT" perplexity "$TINY" empty --device cpu
  one_error 1 "empty"
}
case_logits() {
  run "$FRIT" logits "$TINY" -p hello --out x.npy --device cpu
  expect_status 0
  python3 - <<'P' || fail "x.npy is no NumPy file of 320 floats"
import ast, struct
b = open("x.npy", "rb").read()
n, = struct.unpack("<H", b[8:10])
head = ast.literal_eval(b[10:10 + n].decode())
assert b[:8] == b"\x93NUMPY\x01\x00" and (10 + n) % 64 == 0 and b[9 + n:10 + n] == b"\n"
assert head == {"descr": "<f4", "fortran_order": False, "shape": (320,)}
v = struct.unpack("<320f", b[10 + n:])
assert max(v) > min(v)
P
  run "$FRIT" logits "$TINY" -p '' --out y.npy --device cpu
  one_error 1 "the text is empty"
  expect_no_file y.npy
  run "$FRIT" logits "$TINY" -p hello --out no/such/x.npy --device cpu
  expect_status 1
  expect_err "no/such/x.npy"
}
case_explain() {
  local level
  for level in none role; do
    run "$FRIT" explain "$TINY" --device cpu --level $level --json
    expect_status 0
    json 'assert [p["part"] for p in d["plans"]] == ["body", "head", "greedy"] and d["level"] == "'$level'"'
    json 'assert all(s["label"] and s["bytes"] > 0 for p in d["plans"] for s in p["steps"])'
    json 'print(sum(len(p["steps"]) for p in d["plans"]), file=open("'$level'", "w"))'
  done
  [ "$(cat role)" -lt "$(cat none)" ] || fail "role has no fewer dispatches than none"
  run "$FRIT" explain "$TINY" --device cpu --rows 8 --level role
  expect_status 0
  expect_out "dispatches"
  biased="a projection has a bias"
  ! grep -qF "$biased" out || fail "a bias where there is none"
  run "$FRIT" synth bias.gguf --arch tiny --bias
  for level in 1 8; do # rows: of decode, of prefill
    run "$FRIT" explain bias.gguf --device cpu --rows $level --level role
    [ "$(grep -cF "$biased" out)" = 4 ] || { show; fail "not a note a layer for qkv and for the ffn"; }
    expect_out "it has a bias"
  done
}
case_bench() {
  run "$FRIT" bench "$TINY" -p 8 -n 4 -d 0,8 -r 2 --device cpu --json
  expect_status 0
  json 'assert [r["test"] for r in d] == ["pp8", "tg4", "pp8 @ d8", "tg4 @ d8"]'
  json 'assert all(r["tokens_per_s"] > 0 and r["submits"] == 1 and r["dispatches"] > 10 for r in d)'
  json 'assert all(r["gpu_ms"] > 0 and r["wall_ms"] > 0 and r["version"] and r["date"] for r in d)'
  run "$FRIT" bench "$TINY" -p 8 -n 0 -r 1 --device cpu --csv
  expect_status 0
  [ "$(wc -l <out)" = 2 ] || { show; fail "not two lines"; }
  run "$FRIT" bench "$TINY" -p 8 -n 4 -r 1 --device cpu --profile
  expect_status 0
  expect_out "| tg4 |"
  [ "$(grep -c '^| model |' out)" = 2 ] || { show; fail "a row of results without its header"; }
  expect_out "us in kernels"
}
case_library_here() { # a name without a folder is looked for in the current one first
  echo "no library" >library.so
  run env FRIT_WEBGPU=library.so "$FRIT" complete "$TINY" -p a -n 1 --device gpu
  one_error 1 "WebGPU library ./library.so: "
  run env FRIT_WEBGPU=no-library.so "$FRIT" complete "$TINY" -p a -n 1 --device gpu
  one_error 1 "WebGPU library no-library.so: "
}
case_selftest() {
  local signal
  mkdir tmp
  for signal in INT TERM; do # while its model is there
    TMPDIR=$PWD/tmp python3 - "$FRIT" $signal <<'P' || fail "SIG$signal does not end selftest"
import os, signal, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "selftest", "--device=cpu"], stdout=subprocess.DEVNULL)
while not os.listdir("tmp"): time.sleep(0.001)
time.sleep(0.05)
p.send_signal(getattr(signal, "SIG" + sys.argv[2]))
sys.exit(p.wait(60) not in (1, -signal.SIGTERM))
P
    [ -z "$(ls tmp)" ] || fail "SIG$signal leaves $(ls tmp)"
  done
  TMPDIR=/nonexistent run "$FRIT" selftest --device cpu
  expect_status 1
  expect_err "/nonexistent/frit-selftest-"
  run "$FRIT" selftest --device cpu --json
  expect_status 0
  json 'assert len(d["tests"]) == 48 and all(t["ok"] for t in d["tests"])'
}
case_special_files() { # are written into, or refused; never replaced
  mkfifo pipe
  cat pipe >got &
  run timeout 20 "$FRIT" logits "$TINY" -p hello --out pipe --device cpu
  expect_status 0
  wait
  run "$FRIT" logits "$TINY" -p hello --out x.npy --device cpu
  expect_same got x.npy
  run "$FRIT" synth pipe --arch tiny
  one_error 1 "pipe: not a regular file"
  [ -p pipe ] || fail "the pipe is gone"
  expect_no_file pipe.part
  mkdir folder
  run "$FRIT" synth folder --arch tiny
  one_error 1 "folder: not a regular file"
}
case_not_numbers() { # a NaN in the last tensor: one sentence that names it, wherever it shows
  local args
  run "$FRIT" synth nan.gguf --arch tiny --type f32
  printf '\0\0\300\177' | dd of=nan.gguf bs=1 seek=$(($(wc -c <nan.gguf) - 4)) conv=notrunc 2>/dev/null
  for args in "complete nan.gguf -p abc -n 4" "complete nan.gguf -p abc --temp 0.8 -n 4 --json" \
    "chat nan.gguf -p abc --max 4" "logits nan.gguf -p abc --out x.npy" \
    "perplexity nan.gguf nan.gguf --context 8"; do
    # shellcheck disable=SC2086
    run "$FRIT" $args --device cpu
    one_error 1 "the logits are not numbers: element 63 of 'output_norm.weight' is NaN"
    expect_no_file x.npy
  done
}
case_signals() { # leave no half-written file
  local signal
  for signal in INT TERM HUP; do
    python3 - "$FRIT" $signal <<'P' || fail "SIG$signal does not end synth"
import os, signal, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "synth", "big.gguf", "--arch=llama-3.2-1b", "--type=f32"])
while not os.path.exists("big.gguf.part"): time.sleep(0.01)
number = getattr(signal, "SIG" + sys.argv[2])
p.send_signal(number)
sys.exit(p.wait(30) != -number)
P
    expect_no_file big.gguf big.gguf.part
  done
}
case_broken_output() {
  local args
  for args in "tokenize $TINY -p hello" "help chat" "help pull" "--version"; do
    # shellcheck disable=SC2086
    "$FRIT" $args >&- 2>err && fail "$args: a closed standard output is no error"
    expect_err "standard output cannot be written"
    [ -c /dev/full ] || continue
    # shellcheck disable=SC2086
    "$FRIT" $args >/dev/full 2>err && fail "$args: a full disk is no error"
    expect_err "standard output cannot be written"
  done
  [ -c /dev/full ] || skip "no /dev/full"
}
case_closed_streams() { # their numbers do not go to files that messages would then be written into
  run "$FRIT" synth want.gguf --arch tiny
  "$FRIT" synth got.gguf --arch tiny <&- >&- 2>&-
  expect_same got.gguf want.gguf
  "$FRIT" complete "$TINY" -p - --device cpu <&- 2>err && fail "a closed standard input is no error"
  expect_err "standard input cannot be read"
}

for name in $(declare -F | sed -n 's/^declare -f case_//p'); do run_case "$name"; done
finish
