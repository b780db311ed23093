#!/usr/bin/env bash
# bench/browser/pack.sh OUTDIR [ENGINE...]: the static folder that run.py serves, with everything in it. Engines:
# frit transformers wllama (default: all). Expects `make native package`; fetches the demo model and the
# peers' npm packages. transformers needs ONNX_MODEL, a folder made by bench/browser/to_onnx.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:?usage: pack.sh OUTDIR [ENGINE...]}
shift
engines=${*:-frit transformers wllama}
mkdir -p "$out/models"
out=$(cd "$out" && pwd)
here=$PWD/bench/browser
npm=$here/node_modules
model=$(tools/setup.sh model)

peers() {
  [ -d "$npm/@wllama" ] || npm ci --prefix "$here" --ignore-scripts --no-audit --no-fund >&2
}
put() { # put DIR FILE...
  mkdir -p "$out/$1"
  cp "${@:2}" "$out/$1/"
}
expected() {
  node --input-type=module - "$here/prompts.js" build/native/frit "$model" >"$out/expected.json" <<'JS'
import { execFileSync } from "node:child_process";
const [prompts, frit, model] = process.argv.slice(2);
const { VERIFIED } = await import(prompts), out = {};
for (const precision of ["f32", "auto"]) out[precision] = VERIFIED.map(([prompt, n]) => JSON.parse(execFileSync(frit,
  ["complete", model, "-p", "-", "-n", String(n), "--device", "cpu", "--precision", precision, "--json", "-q"], { input: prompt })).text);
console.log(JSON.stringify(out));
JS
}

cp "$here"/{measure.js,prompts.js} "$out/"
cp "$model" "$out/models/model.gguf"
expected
for engine in $engines; do
  cp "$here/$engine.html" "$out/"
  case $engine in
    frit)
      [ -s web/package/dist/package/src/frit.wasm ] || { echo "pack: run make package first" >&2; exit 1; }
      rm -rf "$out/frit"
      cp -r web/package/dist "$out/frit"
      find "$out/frit" -name '*.d.ts' -delete
      ;;
    transformers)
      peers
      put transformers "$npm/@huggingface/transformers/dist/transformers.min.js"
      put transformers "$npm"/onnxruntime-web/dist/ort-wasm-simd-threaded{,.asyncify}.{mjs,wasm}
      mkdir -p "$out/models/onnx"
      cp -r "${ONNX_MODEL:?the folder that to_onnx.py made}/." "$out/models/onnx/"
      ;;
    wllama)
      peers
      put wllama "$npm/@wllama/wllama/esm/index.min.js" "$npm/@wllama/wllama/esm/wasm/wllama.wasm"
      ;;
    *)
      echo "pack: no engine is called $engine" >&2
      exit 1
      ;;
  esac
done
du -sh "$out"/*
