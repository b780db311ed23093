#!/usr/bin/env bash
# tools/site.sh package|site: builds the npm package (web/package/dist), and on it the site
# (build/site, with the demo model). Expects `make wasm` to have run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PWD/.cache/node/bin:$PATH

die() {
  echo "site: $*" >&2
  exit 1
}

package() {
  [ -s build/wasm/frit.wasm ] || die "build/wasm/frit.wasm is not there: run make wasm"
  rm -rf web/package/dist
  web/node_modules/.bin/tsc -p web/package/tsconfig.json
  cp build/wasm/frit.wasm web/package/dist/package/src/frit.wasm
  cp LICENSE web/package/LICENSE
}

site() {
  local model
  [ -x web/site/node_modules/.bin/vite ] || npm ci --prefix web/site --no-audit --no-fund >&2 ||
    die "npm could not install the packages of web/site (its words are above)"
  model=$(tools/setup.sh model)
  grep -q "\"sha256\": \"$(sha256sum "$model" | cut -d' ' -f1)\"" web/site/public/models.json ||
    die "$model is not the file whose SHA-256 is in web/site/public/models.json"
  mkdir -p build/site/models
  rm -rf build/site/assets
  (cd web/site && npm run --silent build)
  local to
  to=build/site/models/$(basename "$model")
  [ -e "$to" ] && cmp -s "$model" "$to" || ln -f "$model" "$to" 2>/dev/null || cp "$model" "$to"
  echo "site: build/site is built; make serve shows it"
}

case ${1:-} in
  package) package ;;
  site) package && site ;;
  *) die "usage: tools/site.sh package|site" ;;
esac
