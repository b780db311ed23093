#!/usr/bin/env python3
"""demo_picture.py SESSION.txt OUT.png: a picture of a captured terminal session (headless Chromium).

Lines that begin with "$ " are commands. The session is what the commands printed, cut where it says "..."."""
import html
import pathlib
import subprocess
import sys
import tempfile

lines = pathlib.Path(sys.argv[1]).read_text().rstrip("\n").split("\n")
body = "\n".join(f"<b>{html.escape(l)}</b>" if l.startswith("$ ") else html.escape(l) for l in lines)
page = f"""<!doctype html><meta charset=utf-8><style>
body{{margin:0;background:#0d1117;color:#d7dde5;font:15px/1.45 'DejaVu Sans Mono',monospace}}
pre{{margin:0;padding:22px 26px}} b{{color:#7ee787}}</style><pre>{body}</pre>"""
with tempfile.TemporaryDirectory() as d:
    f = pathlib.Path(d, "p.html")
    f.write_text(page)
    width = max(map(len, lines)) * 9.03 + 56
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-quic",
                    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                    f"--user-data-dir={d}/u", f"--screenshot={sys.argv[2]}",
                    f"--window-size={int(width)},{int(len(lines) * 21.75 + 44)}", f.as_uri()],
                   check=True, capture_output=True)
