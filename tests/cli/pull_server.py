"""A loopback file server with the faults that `frit pull` must live with.

    python3 pull_server.py PORT_FILE      writes its port there, serves until killed

Every file has 300,000 bytes that depend on the version (GET /set/VERSION changes it and arms
the faults that happen once, GET /calm/VERSION disarms them; the ETag is the version). The
first part of the path picks the behaviour, the rest is a name:
  /plain/   ranges, If-Range
  /cut/     closes the first answer at half, then as /plain/
  /norange/ the same, but never sends a part of the file
  /notag/   the same, but without a validator
  /liar/    the same, but answers 206 whatever If-Range says
  /cutall/  closes each answer after 50,000 bytes
  /go/X     redirects to /X             /busy/     503 the first time, then as /plain/
  /empty/   no bytes                    /status/N  that status
  /OWNER/REPO/resolve/REV/FILE          as /plain/
GET /log gives the requests since the last change: path, Range, If-Range, one a line.
"""
import hashlib
import http.server
import os
import sys
import threading

SIZE = 300000
version = "v1"
armed = True
log = []


def content():
    block = b"".join(hashlib.sha256(f"{version} {i}".encode()).digest() for i in range(1000))
    return (block * (SIZE // len(block) + 1))[:SIZE]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def text(self, status, body, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        global version, armed
        kind, _, rest = self.path[1:].partition("/")
        if kind in ("set", "calm"):
            version, armed = rest, kind == "set"
            log.clear()
            return self.text(200, content())
        if kind == "log":
            return self.text(200, "".join(log).encode())
        asked = self.headers.get("Range")
        log.append(f"{self.path} {asked or '-'} {self.headers.get('If-Range') or '-'}\n")
        if kind == "go":
            return self.text(302, b"elsewhere", Location="/" + rest)
        if kind == "status":
            return self.text(int(rest), b"an error page")
        if kind == "empty":
            return self.text(200, b"", ETag='"e"')
        if kind == "busy" and armed:
            armed = False
            return self.text(503, b"an error page")
        if kind not in ("plain", "norange", "cut", "cutall", "notag", "liar", "busy"):
            if "/resolve/" not in self.path:
                return self.text(404, b"an error page")
        self.file(kind, asked)

    def file(self, kind, asked):
        global armed
        data, etag, start = content(), f'"{version}"', 0
        fresh = kind == "liar" or self.headers.get("If-Range") == etag
        if asked and fresh and kind != "norange":
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        if kind != "notag":
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        end = len(data)
        if kind in ("cut", "notag", "norange", "liar") and armed:
            end, armed = len(data) // 2, False
        elif kind == "cutall":
            end = min(start + 50000, len(data))
        self.wfile.write(data[start:end])
        if end < len(data):
            self.wfile.flush()
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, address):
        pass  # clients that hang up


server = Server(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
timer = threading.Timer(600, server.shutdown)  # should its test die
timer.daemon = True
timer.start()
server.serve_forever()
