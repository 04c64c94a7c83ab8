"""What a run shows while it samples: the bar of a long stage, refusals for now, and answers that cannot be read."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
from pathlib import Path

import pytest

from curation.difficulty.sampling import SamplingProgress
from flows.run.sampling_session import progress_phrase
from tests.flows.conftest import goldilocks, write_jsonl, write_tiny
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
            shown += os.read(terminal, 4096)
        except OSError:  # the child has ended
            break
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert status == 0, text
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    assert max(map(len, lines)) <= 80
    assert any("3,500/9,000" in line for line in lines)
    assert not any("3,000/9,000" in line for line in lines)  # a finished shard never takes decided problems back
    assert any(line.startswith("5 min left, 1,904 attempts") for line in lines)


def test_refusals_for_now_are_shown_while_a_run_samples() -> None:
    servers = {"busy": 2, "failed": 1, "asked_again": 3, "latency_s": 0.25}
    phrase = progress_phrase(SamplingProgress(in_flight=5, servers=servers))
    assert "5 in flight at 0.25 s, asked again 3 (429: 2, 5xx: 1)" in phrase
    assert "in flight" not in progress_phrase(SamplingProgress(in_flight=5))


RAMBLE = "I do not know how [bold]to[/bold] do this\x1b[31m, sorry"


@pytest.mark.slow
def test_a_stage_that_reads_no_answers_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = write_tiny(tmp_path / "in")
    weak = tmp_path / "in" / "weak.jsonl"
    rows = [json.loads(line) for line in weak.read_text().splitlines()]
    write_jsonl(weak, [{**row, "tries": [{"text": RAMBLE, "right": False}] * 4} for row in rows])
    monkeypatch.setenv("FORCE_COLOR", "1")  # the bar is drawn, and the warning is above it
    done = goldilocks("run", recipe, "--out", tmp_path / "run")
    assert done.status == 0
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    ((stage, warning),) = [(row["stage"], row["warning"]) for row in metrics if "warning" in row]
    assert stage == "stage1.attempts"
    assert " responses (100 %) are of no use (no answer " in warning
    assert "look at `models.student.columns`" in warning
    assert warning.endswith('"I do not know how [bold]to[/bold] do this [31m, sorry"')
    assert done.err.count("warning: stage1.attempts: ") == 1
    assert warning in done.err.replace("\r", "")
    assert "stage2.attempts: " not in done.err
