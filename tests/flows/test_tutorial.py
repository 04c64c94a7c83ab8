"""The tutorial as a reader follows it: its files written, its commands run, one after the other, in an empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import ROOT, goldilocks

TUTORIAL = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_command_of_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own commands run in this process: a start of each takes longer than its work."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    for kind, title, text in BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
            continue
        assert kind == "console", f"a block of {kind} has no title, and nobody would run it"
        for line in text.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            if program == "goldilocks":
                done = goldilocks(*arguments)
                assert done.status == 0, f"{line}\n{done.out[-2000:]}\n{done.err[-2000:]}"
            else:
                assert program == "python", line
                subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    curated = tmp_path / "runs" / "sums" / "curated"
    kept = pl.read_parquet(curated / "data" / "*.parquet")
    dropped = pl.read_parquet(curated / "dropped" / "*.parquet")
    assert kept.height + dropped.height == 161
    assert {"duplicate", "too_easy"} <= set(dropped["reason"])
    assert (kept["correct"] > 0).all()
    assert (tmp_path / "runs" / "train-sums" / "model" / "config.json").is_file()
    assert (tmp_path / "runs" / "after" / "evaluation" / "report.html").is_file()
