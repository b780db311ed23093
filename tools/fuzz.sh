#!/usr/bin/env bash
# tools/fuzz.sh [SECONDS [TARGET...]]: runs the libFuzzer targets (gguf, jinja, token), each SECONDS long
# (600), under AddressSanitizer and UBSan, from seeds made of tests/data. Corpora and logs stay in
# build/fuzz; what breaks a target is build/fuzz/TARGET-crash-*, and the status is then 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-600}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(gguf jinja token)

tools/setup.sh test
cmake --preset fuzz --log-level=WARNING >/dev/null
cmake --build --preset fuzz

# A seed begins with the bytes that choose what the target does with the rest (its head says which).
seeds() {
  local data=tests/data/$1 to=build/fuzz/corpus/$1 f i
  mkdir -p "$to"
  case $1 in
    gguf)
      for f in "$data"/*.gguf; do
        for i in 0 1; do { printf "\\x$i"; cat "$f"; } >"$to/$i-${f##*/}"; done
      done
      for i in 2 3; do # two parts in halves of one length
        f=$to/$i-parts
        { printf "\\x$i"; cat "$data"/split-0000[12]-*; } >"$f"
        truncate -s $((1 + 2 * $(stat -c %s "$data/split-00001-of-00003.gguf"))) "$f"
      done
      ;;
    jinja)
      cp "$data"/*.jinja "$to"
      for f in "$data"/*.json; do { printf '\0'; cat "$f"; } >"$to/${f##*/}"; done
      ;;
    token)
      i=0
      while IFS= read -r f; do
        i=$((i + 1))
        printf "\\x$(printf %x $((i % 32)))\\x$(printf %x $((i % 8)))%s" "$f" >"$to/line-$i"
      done <"$data/nasty.txt"
      ;;
    *) echo "fuzz: no target $1 (gguf, jinja, token)" >&2; return 2 ;;
  esac
}

failed=0
for t in "${targets[@]}"; do
  seeds "$t"
  echo "== $t, $seconds s (build/fuzz/$t.log)"
  if build/fuzz/fuzz_"$t" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=16384 \
    -artifact_prefix=build/fuzz/"$t"- build/fuzz/corpus/"$t" >build/fuzz/"$t".log 2>&1; then
    tail -n 1 build/fuzz/"$t".log
  else
    failed=1
    tail -n 30 build/fuzz/"$t".log
  fi
done
exit $failed
