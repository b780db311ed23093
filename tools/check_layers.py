#!/usr/bin/env python3
"""Checks that includes in src/ point down the layers, and what else holds by place.

    tools/check_layers.py [ROOT]      one line a violation; exit 1 when there is one
    tools/check_layers.py --self-test plants each kind of violation and expects it to be found

Rules:
  - a layer includes itself and lower ranks only (RANK; equal ranks do not see each other);
    `ir` and `import` know no device;
  - webgpu.h is included in one file, src/hw/webgpu_impl.h;
  - system headers that wasm or a portable library lacks stay where HEADERS says;
  - no exit, abort or printing outside src/cli; memory only through base/mem.h;
  - include/frit.h includes standard headers only.
"""
import re
import sys
import tempfile
from pathlib import Path

RANK = {"base": 0, "ir": 1, "hw": 1, "import": 2, "kernels": 2, "plan": 3, "run": 4,
        "infer": 5, "sim": 5, "tasks": 6, "cli": 7, "web": 7}
NO_DEVICE = {"ir", "import"}
# Header -> where it may be included (a path under src/, or its beginning).
HEADERS = {
    "webgpu.h": ["hw/webgpu_impl.h"],
    "dlfcn.h": ["hw/webgpu", "cli/"],
    "pthread.h": ["hw/cpu", "cli/"],
    "threads.h": ["hw/cpu", "cli/"],
    "unistd.h": ["base/file", "hw/cpu", "cli/"],
    "fcntl.h": ["base/file", "cli/"],
    "sys/*": ["base/file", "hw/cpu", "kernels/cpu_isa", "cli/"],
}
PRINTS = "exit _exit _Exit quick_exit abort printf fprintf vprintf vfprintf puts putchar perror"
MEMORY = "malloc calloc realloc free strdup strndup aligned_alloc posix_memalign"
STANDARD = {"assert.h", "stdbool.h", "stddef.h", "stdint.h"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join((PRINTS + " " + MEMORY).split()))


def blank(match):
    """Comments and literals become blanks; line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def allowed_header(name, path):
    for pattern, places in HEADERS.items():
        hit = name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        if hit and not any(path.startswith(p) for p in places):
            return False
    return True


def include_error(layer, path, name, quoted, known):
    if not allowed_header(name, path):
        return f"{name} does not belong here"
    if not quoted:
        return None
    if name == "frit.h":
        return None if RANK[layer] >= RANK["tasks"] else "frit.h is above this layer"
    target = name.split("/")[0]
    if "/" not in name or target not in RANK:
        # Generated headers and third-party ones; a sibling is named with its folder.
        return f'write "{layer}/{name}"' if f"{layer}/{name}" in known else None
    if target == layer:
        return None
    if RANK[target] >= RANK[layer]:
        return f"{layer} must not include {target}: it is not below"
    if layer in NO_DEVICE and target == "hw":
        return f"{layer} knows no device"
    return None


def check_file(path, text, known):
    """Violations of one file; `path` is relative to src/."""
    layer = path.split("/")[0]
    if layer not in RANK:
        return [(1, f"'{layer}' is no layer")]
    found = []
    # Comments go first, but an include's own quotes must survive.
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    for m in INCLUDE.finditer(bare):
        error = include_error(layer, path, m.group(2), m.group(1) == '"', known)
        if error:
            found.append((bare.count("\n", 0, m.start()) + 1, error))
    if layer != "cli":
        code = NOT_CODE.sub(blank, text)
        for m in CALL.finditer(code):
            if m.group(1) in MEMORY.split() and layer == "base":
                continue
            found.append((code.count("\n", 0, m.start()) + 1, f"calls {m.group(1)}"))
    return found


def check(root):
    """All violations below `root` as printable lines."""
    src = root / "src"
    files = sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h", ".inc"))
    known = {p.relative_to(src).as_posix() for p in files}
    lines = []
    for p in files:
        rel = p.relative_to(src).as_posix()
        lines += [f"src/{rel}:{n}: {what}" for n, what in check_file(rel, p.read_text(), known)]
    public = root / "include/frit.h"
    if public.exists():
        for m in INCLUDE.finditer(public.read_text()):
            if m.group(2) not in STANDARD:
                lines.append(f"include/frit.h: includes {m.group(2)}, which users may not have")
    return lines, len(files)


# file, text, part of the expected line or None where it is legal
PLANTED = [
    ("src/base/a.c", '#include "hw/hw.h"\n', "src/base/a.c:1: base must not include hw"),
    ("src/infer/a.c", '\n#include "sim/sim.h"\n', "src/infer/a.c:2: infer must not include sim"),
    ("src/sim/a.h", '#include "infer/a.h"\n', "sim must not include infer"),
    ("src/import/a.c", '#include "hw/hw.h"\n', "import knows no device"),
    ("src/hw/cpu.c", '#include "kernels/k.h"\n', "hw must not include kernels"),
    ("src/run/a.c", '#  include "tasks/chat.h"\n', "run must not include tasks"),
    ("src/run/a.c", '#include "webgpu.h"\n', "webgpu.h does not belong here"),
    ("src/hw/hw.c", "#include <pthread.h>\n#include <dlfcn.h>\n", "dlfcn.h does not belong here"),
    ("src/plan/a.c", "#include <sys/mman.h>\n", "sys/mman.h does not belong here"),
    ("src/plan/a.c", '#include "frit.h"\n', "frit.h is above this layer"),
    ("src/text/a.c", "\n", "'text' is no layer"),
    ("src/plan/a.c", "void f(void) {\n  exit(1);\n}\n", "src/plan/a.c:2: calls exit"),
    ("src/plan/a.c", 'int x = 1; /* " */ void f(void) { printf("a"); }\n', "calls printf"),
    ("src/ir/a.c", "void f(void *p) { free(p); }\n", "calls free"),
    ("src/base/a.c", "void f(void) { abort(); }\n", "calls abort"),
    ("include/frit.h", "#include <curl/curl.h>\n", "includes curl/curl.h"),
    ("src/base/mem.c", "void f(void *p) { free(p); }\n", None),
    ("src/ir/a.c", "/* free(p) */ const char *s = \"exit(1)\"; // abort()\n", None),
    ("src/ir/a.c", "void f(struct s *p) { p->free(p); ir_free(p); }\n", None),
    ("src/cli/a.c", '#include "infer/a.h"\n#include "sim/a.h"\nvoid f(void) { exit(1); }\n', None),
    ("src/hw/webgpu_impl.h", '#include <dlfcn.h>\n#include <webgpu.h>\n#include "base/err.h"\n', None),
    ("src/kernels/a.c", '#include "hw/hw.h"\n#include "ir/ir.h"\n#include "kernels/b.h"\n', None),
]


def self_test():
    failed = 0
    for name, text, want in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            lines, _ = check(Path(folder))
        good = any(want in line for line in lines) if want else not lines
        if not good:
            failed += 1
            print(f"FAIL layers: {name} {text!r}: wanted {want!r}, got {lines}")
    print(f"{len(PLANTED) - failed} passed, {failed} failed, 0 skipped")
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    root = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parent.parent
    lines, n = check(root)
    print("\n".join(lines + [f"layers: {n} files, {len(lines)} violations"]))
    sys.exit(1 if lines or n == 0 else 0)


main()
