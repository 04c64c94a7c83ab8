"""The tutorial as a reader follows it: its files written, its commands run, one after the other, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
    }
    for kind, title, text in BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
            continue
        assert kind == "console", f"a block of {kind} has no title, and nobody would run it"
        for line in text.splitlines():
            done = subprocess.run(
                ["bash", "-c", line.removeprefix("$ ")], cwd=tmp_path, env=variables, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"

    curated = tmp_path / "runs" / "sums" / "curated"
    kept = pl.read_parquet(curated / "data" / "*.parquet")
    dropped = pl.read_parquet(curated / "dropped" / "*.parquet")
    assert kept.height + dropped.height == 161
    assert {"duplicate", "too_easy"} <= set(dropped["reason"])
    assert (kept["correct"] > 0).all()
    assert (tmp_path / "runs" / "train-sums" / "model" / "config.json").is_file()
    assert (tmp_path / "runs" / "after" / "evaluation" / "report.html").is_file()
