#!/usr/bin/env python3
"""peak.py CMD...: runs it, its output on standard error; prints its peak resident memory in MB."""
import resource
import subprocess
import sys

status = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 // 1_000_000)
sys.exit(status)
