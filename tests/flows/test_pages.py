"""Pages as a reader follows them: their commands and blocks run, and print what they show."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import curation
import flows
from curation.records import ConfigError, SourceError
from tests.curation.policies.test_endpoint import StandIn
from tests.flows.conftest import ROOT, Tiny, goldilocks

FILE_OR_COMMANDS = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
CODE_AND_OUTPUT = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
MARK = "=== next block ==="


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


PYTHON = re.findall(r"^```python\n(.*?)^```", page("how-to/python.md"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_command_of_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, title, text in FILE_OR_COMMANDS.findall(page("tutorial.md")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
            continue
        assert kind == "console", f"a block of {kind} has no title, so no reader would run it"
        for line in text.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            if program == "goldilocks":  # in this process: a start takes longer than the work
                done = goldilocks(*arguments)
                assert done.status == 0, f"{line}\n{done.out[-2000:]}\n{done.err[-2000:]}"
            else:
                assert program == "python", line
                subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    runs = tmp_path / "runs"
    kept, dropped = (pl.read_parquet(runs / "sums" / "curated" / name / "*.parquet") for name in ("data", "dropped"))
    assert kept.height + dropped.height == 161
    assert {"duplicate", "too_easy"} <= set(dropped["reason"])
    assert (kept["correct"] > 0).all()
    assert (runs / "train-sums" / "model" / "config.json").is_file()
    assert (runs / "after" / "evaluation" / "report.html").is_file()


@pytest.mark.slow
def test_the_page_of_one_problem_prints_what_it_shows() -> None:
    text = page("one-problem.md")
    blocks = CODE_AND_OUTPUT.findall(text)
    assert len(blocks) == text.count("```python") == text.count("```text") > 5
    code = f"\nprint({MARK!r})\n".join(code for code, _ in blocks)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split(f"{MARK}\n") == [shown for _, shown in blocks]


@pytest.mark.slow
def test_the_blocks_of_the_page_on_python_run_against_a_server_and_a_recipe(
    tiny_copy: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    says = tmp_path / "says.json"
    says.write_text(json.dumps([["7 times 6", "It is \\boxed{42}."]]))
    server = StandIn(tmp_path / "journal.jsonl", says=says)
    monkeypatch.chdir(tiny_copy.recipe.parent)
    printed = []
    try:
        for block in PYTHON:
            here = block.replace("sums.toml", str(tiny_copy.recipe)).replace("http://localhost:8000/v1", server.url)
            exec(compile(here, "python.md", "exec"), {})
            printed.append(capsys.readouterr().out.splitlines())
    finally:
        server.stop()
    answers, program, rate, pipeline = printed
    assert [line.split()[0] for line in answers] == ["correct", "wrong", "wrong"]
    assert program[0].startswith("AC [")
    assert rate == ["1.0 correct"]
    assert pipeline[-1] == str(tiny_copy.table("data").height)


def test_only_the_names_of_the_page_on_python_are_promised() -> None:
    imported = {
        name for block in PYTHON for names in re.findall(r"import ([\w, ]+)", block) for name in names.split(", ")
    }
    assert imported == {*curation.__all__, *flows.__all__}


def test_mistakes_in_python_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no curated set"):
        curation.read_set(tmp_path)
    with pytest.raises(ConfigError, match="the kinds that can be asked are endpoint, vllm"):
        curation.pass_rate("1 + 1?", "2", {"kind": "torch", "model": "embedded"})
