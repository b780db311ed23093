#!/usr/bin/env python3
"""compare.py: frit beside llama.cpp on one model, one machine, one run.

  compare.py --model M.gguf --device gpu --out bench/results/NAME \
             [--peer "llama.cpp CUDA=DIR/cuda/bin/llama-bench -ngl 99 -fa 1"] ... [--depth 0,4096] [--reps 5]

First the output is verified, only then the clock runs: greedy tokens of the device, in f32, against another
implementation of the same kernels: the fast CPU forms for a GPU, the kernels' plain definitions for the CPU. Writes NAME.json (everything, with commands) and NAME.md (the table). Standard library only."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("--frit", default="build/native/frit")
ap.add_argument("--model", required=True)
ap.add_argument("--name", help="what to call the model in the table")
ap.add_argument("--device", default="gpu")
ap.add_argument("--threads", type=int, default=0)
ap.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
ap.add_argument("--env", action="append", default=[], metavar="PEER:VAR=VALUE", help="environment of one peer")
ap.add_argument("--frit-arg", action="append", default=[], help="one more argument of frit bench")
ap.add_argument("--depth", default="0")
ap.add_argument("--pp", type=int, default=512)
ap.add_argument("--tg", type=int, default=128)
ap.add_argument("--reps", type=int, default=5)
ap.add_argument("--tokens", type=int, default=16, help="greedy tokens to verify; 0: none")
ap.add_argument("--out", required=True)
a = ap.parse_args()


def run(cmd, env=None, timeout=550):
    print("+", shlex.join(cmd), file=sys.stderr, flush=True)
    p = subprocess.run(cmd, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})})
    if p.returncode:
        raise SystemExit(f"{cmd[0]} failed ({p.returncode}): {p.stderr.strip()[-2000:]}")
    return p.stdout


def machine():
    m = {"date": datetime.datetime.now().isoformat(timespec="seconds"), "cpu": platform.processor()}
    try:
        m["cpu"] = next(l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    except (OSError, StopIteration):
        pass
    try:
        q = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).strip()
        m["gpu"], m["driver"] = [x.strip() for x in q.splitlines()[0].split(",")]
    except (OSError, SystemExit):
        pass
    return m


def verify():
    if not a.tokens:
        return "not verified (--tokens 0)"
    base = [a.frit, "complete", a.model, "-p", "The three laws of motion are", "-n", str(a.tokens), "--ignore-eos",
            "--precision", "f32", "--json", "--context", "256"]
    cpu = a.device == "cpu"
    # At level role the cpu device has no fast forms: it runs each kernel's definition.
    other = ["--device", "cpu", "--level", "role"] if cpu else ["--device", "cpu"]
    got, want = (json.loads(run(base + d))["tokens"] for d in (["--device", a.device] + (a.frit_arg if cpu else []), other))
    if got != want:
        raise SystemExit(f"verify: {a.device} gave {got}, {shlex.join(other)} {want}: nothing was timed")
    return f"{a.tokens} greedy tokens on {a.device} equal those of {shlex.join(other)}, f32"


def frit_rows():
    cmd = [a.frit, "bench", a.model, "--device", a.device, "-p", str(a.pp), "-n", str(a.tg), "-d", a.depth,
           "-r", str(a.reps), "--json"] + (["--threads", str(a.threads)] if a.threads else []) + a.frit_arg
    out = json.loads(run(cmd))
    for r in out:
        r["tokens_per_s"] = statistics.median(r["samples"])
        r["min"], r["max"] = min(r["samples"]), max(r["samples"])
    return cmd, out


def peer_rows(name, command):
    cmd = shlex.split(command) + ["-m", a.model, "-p", str(a.pp), "-n", str(a.tg), "-d", a.depth, "-r", str(a.reps),
                                  "-o", "json"] + (["-t", str(a.threads)] if a.threads else [])
    env = dict(e.split(":", 1)[1].split("=", 1) for e in a.env if e.split(":", 1)[0] == name)
    rows = []
    for r in json.loads(run(cmd, env)):
        test = f"pp{r['n_prompt']}" if r["n_prompt"] else f"tg{r['n_gen']}"
        if r.get("n_depth"):
            test += f" @ d{r['n_depth']}"
        samples = r["samples_ts"]
        rows.append({"test": test, "tokens_per_s": statistics.median(samples),
                     "min": min(samples), "max": max(samples)})
    return cmd, rows


result = {"machine": machine(), "model": a.name or pathlib.Path(a.model).name, "verified": verify(), "runs": []}
cmd, rows = frit_rows()
result["runs"].append({"name": "frit", "command": shlex.join(cmd), "rows": rows})
for p in a.peer:
    name, command = p.split("=", 1)
    cmd, rows = peer_rows(name, command)
    result["runs"].append({"name": name, "command": shlex.join(cmd), "rows": rows})

tests = [r["test"] for r in result["runs"][0]["rows"]]
lines = [f"# {result['model']}", "", ", ".join(f"{k} {v}" for k, v in result["machine"].items()) + ".",
         f"Verified before the clock: {result['verified']}. Tokens a second, median of {a.reps}; "
         "in brackets frit's least and greatest, and its ratio to each peer.", "",
         "| | " + " | ".join(tests) + " |", "|---|" + "---|" * len(tests)]
first = {r["test"]: r["tokens_per_s"] for r in result["runs"][0]["rows"]}
for run_ in result["runs"]:
    by = {r["test"]: r["tokens_per_s"] for r in run_["rows"]}
    cells = []
    for t in tests:
        if t not in by:
            cells.append("")
        elif run_ is result["runs"][0]:
            spread = next(r for r in run_["rows"] if r["test"] == t)
            cells.append(f"{by[t]:,.0f} ({spread['min']:,.0f} to {spread['max']:,.0f})")
        else:
            cells.append(f"{by[t]:,.0f} ({first[t] / by[t]:.2f}x)")
    lines.append(f"| {run_['name']} | " + " | ".join(cells) + " |")
extra = [r for r in result["runs"][0]["rows"] if r.get("gpu_ms") or r.get("submits")]
if extra:
    lines += ["", "| frit | submits | dispatches | GPU ms | wall ms |", "|---|---|---|---|---|"]
    for r in extra:
        f = lambda k: f"{r[k]:.3f}" if isinstance(r.get(k), float) else str(r.get(k, ""))
        lines.append(f"| {r['test']} | {f('submits')} | {f('dispatches')} | {f('gpu_ms')} | {f('wall_ms')} |")
lines += ["", "Commands:", ""] + [f"    {r['command']}" for r in result["runs"]] + [""]
out = pathlib.Path(a.out)
out.parent.mkdir(parents=True, exist_ok=True)
out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
out.with_suffix(".md").write_text("\n".join(lines))
print("\n".join(lines))
