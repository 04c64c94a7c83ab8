"""The bar of a long stage on a terminal of 80 columns."""

from __future__ import annotations

import os
import pty
import re
import sys

from tests.places import ROOT

SCRIPT = """
from flows.run.progress import bar, note
with bar("Stage 1: attempts", 9000) as advance:
    advance(2000)
    note("5 min left, 1,904 attempts, 12,345 tokens/s, 1,234 kept, 567 dropped, 64 in flight at 1.2 s", 5500)
    advance(1000)
"""


def test_a_bar_counts_decided_problems_within_80_columns() -> None:
    shown = bytearray()
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, "-c", SCRIPT], {**os.environ, "COLUMNS": "80", "TERM": "xterm"})
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the child has ended
            break
        shown += part
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert status == 0, text
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    assert max(map(len, lines)) <= 80
    assert any("3,500/9,000" in line for line in lines)
    assert not any("3,000/9,000" in line for line in lines)  # a finished shard never takes decided problems back
    assert any(line.startswith("5 min left, 1,904 attempts") for line in lines)
