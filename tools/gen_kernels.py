#!/usr/bin/env python3
"""gen_kernels.py SRC OUT: writes OUT/kernel_texts.c (every .wgsl under SRC as a C string) and
OUT/params_step.h (struct step_params from lib/step.wgsl, with asserts on offsets)."""
import pathlib
import re
import sys

src, out = map(pathlib.Path, sys.argv[1:3])


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def quote(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


# Comments and indentation stay out: they would be a third of the wasm's data.
def lines_of(text):
    for line in text.splitlines():
        line = re.sub(r"\s*//.*$", "", line).strip()
        if line:
            yield line


texts = []
for path in sorted(src.rglob("*.wgsl")):
    body = "\n    ".join(quote(line) for line in lines_of(path.read_text()))
    texts.append(f'    {{"{path.relative_to(src).as_posix()}",\n    {body}}},\n')
write(out / "kernel_texts.c", '#include "kernels/kernel_impl.h"\n\n'
      "#if defined(__GNUC__)\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#endif\n\n"
      "const kernel_text kernel_texts[] = {\n" + "".join(texts) + "};\n"
      "const uint32_t kernel_n_texts = sizeof kernel_texts / sizeof kernel_texts[0];\n")

step = (src / "lib/step.wgsl").read_text()
body = re.search(r"struct Step \{(.*?)\n\}", step, re.S).group(1)
fields = re.findall(r"^\s*(\w+): (u32|f32|i32),\s*(?://\s*(.*))?$", body, re.M)
ctype = {"u32": "uint32_t", "f32": "float", "i32": "int32_t"}
h = ["/* Generated from lib/step.wgsl. */", "#ifndef FRIT_PARAMS_STEP_H", "#define FRIT_PARAMS_STEP_H", "",
     "#include <stddef.h>", "#include <stdint.h>", "", "typedef struct step_params {"]
h += [f"  {ctype[t]} {n}; /* {c} */" for n, t, c in fields]
h += ["} step_params;"]
h += [f"_Static_assert(offsetof(step_params, {n}) == {4 * i}, \"as in WGSL\");" for i, (n, _, _) in enumerate(fields)]
h += ["", "#endif", ""]
write(out / "params_step.h", "\n".join(h))
