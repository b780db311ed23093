#!/usr/bin/env python3
"""run.py FOLDER --out bench/results/browser-NAME: each engine's page in a headless Chromium of its own, a fresh
profile each, one after another; writes NAME.json (everything) and NAME.md (the table).

FOLDER is what bench/browser/pack.sh makes. Only Python's standard library and a Chromium are needed.

  --run frit:gpu --run wllama:cpu:threads=1 ...   PAGE:DEVICE[:KEY=VALUE...] in place of all; the keys are the query
                                                  of measure.js; f16=1 lets Chromium offer 16-bit floats on NVIDIA
  --adapter swiftshader|gpu     what WebGPU in the browser runs on (default swiftshader)
  --browser COMMAND             default: chromium
  --reps 5 --tokens 128 --prompt 512 --limit SECONDS --timeout SECONDS --verify 40   of every run

FOLDER is served on loopback with byte ranges and the headers of a cross-origin isolated page. Bytes served are
counted, so that the table tells what an engine downloads besides the weights."""
import argparse
import datetime
import functools
import gzip
import http.server
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

RUNS = ["frit:gpu", "frit:cpu", "frit:cpu:precision=f32", "transformers:gpu:dtype=q4", "transformers:cpu:dtype=q8", "wllama:gpu", "wllama:cpu",
        "wllama:cpu:threads=1"]
F16 = ["frit:gpu:f16=1", "wllama:gpu:f16=1"]  # with --adapter gpu
WEIGHTS = re.compile(r"/models/")
FLAGS = ["--headless", "--no-sandbox", "--enable-unsafe-webgpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-gpu-watchdog"]
F16_FLAG = ["--enable-dawn-features=vulkan_enable_f16_on_nvidia"]
ADAPTER = {"swiftshader": ["--use-webgpu-adapter=swiftshader"],
           "gpu": ["--enable-features=Vulkan", "--use-angle=vulkan", "--disable-vulkan-surface", "--ignore-gpu-blocklist"]}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files with ranges. server.served: path -> bytes; server.answer: what was POSTed to /done;
    server.progress: to /progress, last."""
    protocol_version = "HTTP/1.1"
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm",
                      ".mjs": "text/javascript", ".js": "text/javascript"}

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def do_GET(self, body=True):
        path = self.translate_path(self.path)
        if not os.path.isfile(path):
            return self.send_error(404)
        stat = os.stat(path)
        first, last, part = 0, stat.st_size - 1, re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if part:
            first, last = int(part[1]), min(last, int(part[2] or last))
        if first > last and stat.st_size:
            return self.send_error(416)
        self.send_response(206 if part else 200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{stat.st_size}-{stat.st_mtime_ns}"')
        self.send_header("Last-Modified", self.date_time_string(stat.st_mtime))
        # Fresh for the second visit, as a versioned asset is.
        self.send_header("Cache-Control", "max-age=86400")
        if part:
            self.send_header("Content-Range", f"bytes {first}-{last}/{stat.st_size}")
        self.end_headers()
        if not body:
            return
        left = last - first + 1
        with open(path, "rb") as f:
            f.seek(first)
            while left and (data := f.read(min(left, 1 << 20))):
                try:
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True
                    break
                left -= len(data)
        key = self.path.split("?")[0]
        with self.server.lock:
            self.server.served[key] = self.server.served.get(key, 0) + (last - first + 1 - left)

    def do_HEAD(self):
        self.do_GET(body=False)

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if self.path == "/progress":
            self.server.progress = data.decode()
        elif self.path == "/done":
            self.server.answer = json.loads(data)
            self.server.answered.set()

    def log_message(self, *_):
        pass


def sizes(folder, served):
    """Bytes besides the weights of one visit: as they are, and gzipped."""
    code = [p for p in served if not WEIGHTS.search(p) and not p.endswith("expected.json")]
    files = [folder / p.lstrip("/") for p in code if (folder / p.lstrip("/")).is_file()]
    return {"files": sorted(code), "raw": sum(f.stat().st_size for f in files),
            "gzipped": sum(len(gzip.compress(f.read_bytes(), 9)) for f in files)}


def run_page(a, spec):
    """One page in one browser; the page's object, and what it made the server send."""
    page, device, *rest = spec.split(":")
    query = "&".join([f"device={device}", f"reps={a.reps}", f"tokens={a.tokens}", f"prompt={a.prompt}", f"limit={a.limit}", f"verify={a.verify}", *rest])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(a.folder)))
    server.daemon_threads = True
    server.served, server.lock, server.answered = {}, threading.Lock(), threading.Event()
    server.answer = server.progress = None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        log = pathlib.Path(profile, "log")
        command = [*shlex.split(a.browser), *FLAGS, *ADAPTER[a.adapter], *(F16_FLAG if "f16=1" in rest else []), *a.flag,
                   f"--user-data-dir={profile}/profile",
                   f"http://127.0.0.1:{server.server_port}/{page}.html?{query}"]
        with log.open("wb") as f:
            p = subprocess.Popen(command, stdout=f, stderr=f)
            try:
                ok = server.answered.wait(a.timeout)
            finally:
                p.terminate()
                try:
                    p.wait(10)
                except subprocess.TimeoutExpired:
                    p.kill()
        answer = server.answer if ok else {"error": f"no answer in {a.timeout} s; last: {server.progress}", "log": log.read_text(errors="replace")[-2000:]}
    server.shutdown()
    weights = sum(n for path, n in server.served.items() if WEIGHTS.search(path))
    return {"run": spec, **answer, "load_average": load, "besides_weights": sizes(a.folder, server.served),
            "weights_sent": weights}


def words(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except OSError:
        return ""


def machine(a):
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "")
    gpu = words(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]) if shutil.which("nvidia-smi") else ""
    return {"date": datetime.datetime.now().isoformat(timespec="seconds"), "cpu": cpu, "threads": os.cpu_count(), "gpu": gpu,
            "adapter": a.adapter, "browser": words([*shlex.split(a.browser), "--version"]).splitlines()[-1:],
            "command": shlex.join(["bench/browser/run.py", *sys.argv[1:]])}


def rate(s):
    if not s or s["median"] is None:
        return ""
    digits = 1 if s["median"] < 100 else 0
    return f"{s['median']:,.{digits}f} ({s['min']:,.{digits}f} to {s['max']:,.{digits}f})"


def row(r):
    name = f"{r.get('engine', r['run'].split(':')[0])} {r.get('version', '')}"
    how = ", ".join([{"gpu": "WebGPU", "cpu": "CPU"}[r["run"].split(":")[1]], *r["run"].split(":")[2:]])
    if "error" in r:
        words = str(r["error"]).splitlines()[0][:200]
        return [name, how, words if words.startswith("no answer") else f"does not run: {words}", *[""] * 7]
    size, first, again, speed = r["besides_weights"], r["first_visit"], r["second_visit"] or {}, r["speed"]
    seconds = lambda t: f"{t / 1000:.2f}" if t is not None else ""
    return [name, how, f"{size['raw'] / 1e6:.2f} ({size['gzipped'] / 1e6:.2f})", f"{r['weights_sent'] / 1e6:.1f}",
            seconds(first.get("ready")), seconds(first.get("first_token")), seconds(again.get("ready")),
            seconds(again.get("first_token")), rate(speed["prompt_per_s"]), rate(speed["decode_per_s"])]


def phases(r):
    out = []
    for visit in ("first_visit", "second_visit"):
        v = r.get(visit) or {}
        if not v:
            out += ["", ""]
            continue
        inner = [(n, t) for n, t in v["phases"].items() if n != "ready"]
        steps = [("page", 0), ("start", v["script"]), *inner, ("first token", v["ready"])]
        ends = [t for _, t in steps[1:]] + [v["first_token"]]
        out += [", ".join(f"{n} {(e - t) / 1000:.2f}" for (n, t), e in zip(steps, ends)), v["long_tasks"]["max_ms"]]
    return out


def table(head, rows):
    return "\n".join("| " + " | ".join(map(str, x)) + " |" for x in [head, ["---"] * len(head), *rows]) + "\n"


def markdown(m, runs):
    ran = [r for r in runs if "error" not in r]
    adapters = {json.dumps(r["adapter"]) for r in ran if r.get("adapter")}
    text = f"""# {m['title']}

{m['date']}; {(m['browser'] or ['Chromium'])[0]}; CPU {m['cpu']}, {m['threads']} threads; GPU {m['gpu'] or 'none'}; WebGPU adapter: {m['adapter']}
{' '.join(sorted(adapters))}. Load average before each run: {', '.join(f"{r['load_average']:.1f}" for r in runs)}.

    {m['command']}

The same weights for all. A fresh profile's first visit, then a reload of the page; times are seconds from the
navigation's start, with the files on loopback. Then medians, with the least and the most, of {m['reps']} repetitions at most: a prompt of
{m['prompt']} tokens and one token out, and {m['tokens']} greedy tokens after a short prompt (the call's time less that of one token).
MB besides weights: what the server sent for the page, uncompressed (gzipped). MB of weights: sent in both visits.

"""
    text += table(["engine", "on", "MB besides weights", "MB of weights", "ready", "first token", "reload: ready",
                   "reload: first token", "prompt tok/s", "decode tok/s"], [row(r) for r in runs])
    text += "\nPhases of the two visits, seconds:\n\n" + table(
        ["engine", "first visit", "longest task of the page, ms", "reload", "longest task, ms"],
        [[f"{r['engine']}, {':'.join(r['run'].split(':')[1:])}", *phases(r)] for r in ran])
    text += "\nWhat they answered, greedily (the capital of France; a story):\n\n"
    for r in ran:
        same = f" (equal to native frit's, {' and '.join(r['equals_native'])})" if r.get("equals_native") else ""
        text += f"- {r['engine']}, {':'.join(r['run'].split(':')[1:])}{same}: " + " / ".join(json.dumps(t, ensure_ascii=False) for t in r["texts"]) + "\n"
    return text


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder", type=pathlib.Path)
    ap.add_argument("--out", required=True)
    ap.add_argument("--title", default="SmolLM2-135M-Instruct in Chromium")
    ap.add_argument("--run", action="append")
    ap.add_argument("--adapter", choices=ADAPTER, default="swiftshader")
    ap.add_argument("--browser", default="chromium")
    ap.add_argument("--flag", action="append", default=[], help="one more of the browser's")
    for name, value in [("reps", 5), ("tokens", 128), ("prompt", 512), ("limit", 600), ("timeout", 900), ("verify", 40)]:
        ap.add_argument(f"--{name}", type=int, default=value)
    a = ap.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the browser ends, too
    m, runs = {**machine(a), "title": a.title, "reps": a.reps, "tokens": a.tokens, "prompt": a.prompt}, []
    for spec in a.run or RUNS + (F16 if a.adapter == "gpu" else []):
        r = run_page(a, spec)
        runs.append(r)
        print(spec, r.get("error") or json.dumps({k: r[k] for k in ("first_visit", "second_visit", "speed")}), file=sys.stderr, flush=True)
        pathlib.Path(a.out + ".json").write_text(json.dumps({"machine": m, "runs": runs}, indent=1, ensure_ascii=False) + "\n")
        pathlib.Path(a.out + ".md").write_text(markdown(m, runs))


main()
