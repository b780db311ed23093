# Peak memory of the demo model. Pages of the mapped file count while they are resident.
#
# On a machine with a GPU the bar of its host memory is measured too; by hand:
#   tests/cli/peak.py build/native/frit complete MODEL -p "The sky is" -n 4 --device=gpu
source "$(dirname "$0")/lib.sh"

peak() { # CMD...: $peak_mb of the run in 10^6 bytes
  status=0
  peak_mb=$("$ROOT/tests/cli/peak.py" "$@" 2>err) || status=$?
  [ "$status" = 0 ] || { show; fail "exit status is $status"; }
}
# A prompt of some 600 tokens: several chunks of prefill, rows of the KV cache in use.
prompt() { for _ in $(seq 60); do printf 'The quick brown fox jumps over the lazy dog. '; done; }
need_model() { [ -e "$MODEL" ] || skip "the demo model is not at $MODEL"; }

case_cpu() {
  need_model
  local file_mb=$(($(stat -c %s "$MODEL") / 1000000))
  peak "$FRIT" complete "$MODEL" -p "$(prompt)" -n 8 --device=cpu --quiet
  echo "  peak $peak_mb MB, file $file_mb MB"
  [ "$peak_mb" -le $((file_mb + 150)) ] || fail "peak $peak_mb MB, over $file_mb + 150"
}
# Nothing that is loaded costs anything by itself: a 70 kB model runs in a few MB.
case_floor() {
  "$FRIT" synth tiny.gguf --arch=tiny --context=256 >/dev/null 2>&1
  peak "$FRIT" complete tiny.gguf -p hello -n 8 --device=cpu --quiet
  echo "  peak $peak_mb MB"
  [ "$peak_mb" -le 20 ] || fail "peak $peak_mb MB for a model of 70 kB"
}
case_gpu_host() {
  need_model
  "$FRIT" devices --json 2>/dev/null | python3 -c '
import json, sys
sys.exit(all(g["software"] for g in json.load(sys.stdin)["gpus"]))' ||
    skip "no GPU here: a software adapter keeps its buffers in host memory"
  peak "$FRIT" complete "$MODEL" -p "The sky is" -n 4 --device=gpu --quiet
  echo "  peak $peak_mb MB"
  [ "$peak_mb" -le 250 ] || fail "peak $peak_mb MB of host memory, over 250"
}

run_case cpu
run_case floor
run_case gpu_host
finish
