"""Talks with `frit chat` in a terminal of its own: python3 chat_pty.py FRIT chat MODEL OPTION...

Ctrl-C while a line is typed drops the line; during an answer it stops the answer; the program goes
on, and Ctrl-D ends it with status 0. What is recalled or pasted keeps its lines (chat.sh looks into
the history). Exits with 1 and a sentence when something else happens."""
import os
import pty
import re
import select
import sys
import time

LIMIT = 60  # seconds for each thing that is waited for
command = sys.argv[1:]
no_max = [a for i, a in enumerate(command) if a != "--max" and (i == 0 or command[i - 1] != "--max")]


class Terminal:
    def __init__(self, args):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(args[0], args)

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def wait(self, pattern, what):
        end = time.time() + LIMIT
        while not re.search(pattern, self.seen):
            if time.time() > end or not self.read(end - time.time()):
                sys.exit(f"no {what}; seen: {self.seen[-500:]!r}")
        self.seen = self.seen[re.search(pattern, self.seen).end():]

    def type(self, text):
        os.write(self.fd, text)

    def end(self):
        end = time.time() + LIMIT
        while time.time() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            self.read(0.1)
        os.kill(self.pid, 9)
        sys.exit("it did not end")


# A Ctrl-C between an answer and the prompt is echoed in front of the latter.
PROMPT = rb"(^|[\r\n])(\^C)?(\x1b\[[0-9;?]*[A-Za-z])*> "

t = Terminal(command)
t.wait(rb"/help lists", "greeting")
t.wait(PROMPT, "prompt")
t.type(b"first question\r")
t.wait(rb"first question", "echo")
t.wait(PROMPT, "prompt after an answer")
t.type(b"half a li")
t.wait(rb"half a li", "echo of half a line")
t.type(b"\x03")
t.wait(rb"\^C", "^C")
t.wait(PROMPT, "prompt after Ctrl-C")
t.type(b"one\\\r")
t.wait(rb"\. ", "prompt of a second line")
t.type(b"two\r")
t.wait(PROMPT, "prompt after two lines")
t.type(b"\x1b[A.three\r")  # recalled, both lines, and added to
t.wait(rb"\.three", "recalled lines")
t.wait(PROMPT, "prompt after recalled lines")
t.type(b"say: \x1b[200~pasted\r\xc3\xa9t\xc3\xa9\r\x1b[201~")
t.wait(rb"t\xc3\xa9", "pasted lines")
t.type(b" now\r")
t.wait(PROMPT, "prompt after a paste")
t.type(b"/help\r")
t.wait(rb"/clear", "list of commands")
t.wait(PROMPT, "prompt after /help")
t.type(b"\x04")
status = t.end()
if status:
    sys.exit(f"Ctrl-D: exit status {status}")

# An answer as long as the context: Ctrl-C must cut it.
t = Terminal(no_max + ["--temp", "5", "--top-p", "1", "--min-p", "0", "--top-k", "0"])
t.wait(PROMPT, "prompt")
for _ in range(20):  # the model may end an answer by itself before the Ctrl-C comes
    t.type(b"tell me all\r")
    t.wait(rb"tell me all\r?\n", "echo")
    t.read(0.05)  # with luck the answer has begun; Ctrl-C before it counts as well
    t.type(b"\x03")
    t.wait(PROMPT, "prompt after a stopped answer")
t.type(b"/exit\r")
status = t.end()
if status:
    sys.exit(f"/exit: exit status {status}")
