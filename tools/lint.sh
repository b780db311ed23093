#!/usr/bin/env bash
# tools/lint.sh --fix | [--format] [--tidy]: clang-format and clang-tidy (19) over the C files that
# git knows. --fix rewrites, the others only report. clang-tidy reads build/native.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files() { git ls-files --cached --others --exclude-standard -- "$@"; }
mapfile -t all < <(files 'src/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'fuzz/*.[ch]')
[ ${#all[@]} -gt 0 ] || { echo "lint: no C files found" >&2; exit 1; }
for tool in clang-format-19 clang-tidy-19; do
  command -v $tool >/dev/null || { echo "lint: $tool is missing; tools/setup.sh test installs it" >&2; exit 1; }
done

status=0
for option in "$@"; do
  case $option in
    --fix) clang-format-19 -i "${all[@]}" ;;
    --format)
      for file in "${all[@]}"; do
        clang-format-19 --dry-run -Werror "$file" 2>/dev/null && continue
        echo "FAIL format: $file (make format mends it)"
        status=1
      done
      ;;
    --tidy)
      [ -e build/native/compile_commands.json ] || make native
      # Those that the native build compiles: it has no browser's back end.
      mapfile -t sources < <(files 'src/*.c' | while read -r file; do
        ! grep -qF "$PWD/$file\"" build/native/compile_commands.json || echo "$file"
      done)
      printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" \
        clang-tidy-19 --quiet -p build/native --extra-arg=-Wno-unknown-warning-option || status=1
      ;;
    *) echo "lint: unknown option $option" >&2; exit 2 ;;
  esac
done
exit $status
