"""The `goldilocks` command: what it refuses before it writes anything, and the real process once from end to end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flows.serve.access import CLIENT_KEY
from tests.flows.conftest import KEYS, ROOT, TITLES, Tiny, goldilocks, refusal, stamps
from tests.reference_pages.__main__ import commands
from tests.waiting import PATIENCE_S

REFUSED = {
    "stage1.band.max_pass_rate=0.1": "stage1.band: impossible band: min_correct = 1",
    "sources.0.path=problem.jsonl": "holds problems.jsonl, strong.jsonl, tiny.toml, weak.jsonl.",
    "sources.0.columns.answer={path='meta.final', take='hash'}": "no row has `meta.final`; there are: question, final.",
    "sources.0.path=tiny.toml": "tiny.toml, line 1: not JSON",
    "sources.0.kind=parquet": "problems.jsonl: not a readable parquet file",
    "models.student.path=absent.jsonl": "absent.jsonl: there is no such file",
    "models.student.path=tiny.toml": "tiny.toml: not a .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file",
    "models.student.columns.problem=prompt": "no row has `prompt`; there are: question, tries, tries.0.text",
    "models.strong.columns.text=response": "inside `tries`: no row has `response`; there are: text, right.",
    "models.student.columns.attempts=question": "`question` is not a list of objects",
}


@pytest.mark.parametrize("override", REFUSED)
def test_a_mistake_is_one_sentence_and_nothing_is_written(override: str, tiny_recipe: Path, tmp_path: Path) -> None:
    before, command = stamps(tiny_recipe.parent), ("run", tiny_recipe, "--set", override, "--out", tmp_path / "run")
    assert REFUSED[override] in refusal(*command)
    dry = goldilocks(*command, "--dry")
    assert (dry.status, dry.err.count("\n")) == (1, 1)
    assert REFUSED[override] in dry.err
    assert not (tmp_path / "run").exists()
    assert stamps(tiny_recipe.parent) == before


def test_files_and_folders_that_cannot_be_used_are_refused(tiny_recipe: Path, tmp_path: Path) -> None:
    assert "absent.toml: there is no such file" in refusal("run", tmp_path / "absent.toml", "--out", tmp_path / "run")
    (tmp_path / "empty.jsonl").touch()
    empty = f"sources.0.path={tmp_path / 'empty.jsonl'}"
    assert "holds no rows" in refusal("run", tiny_recipe, "--set", empty, "--out", tmp_path / "run")
    for place in (tmp_path / "empty.jsonl", tmp_path / "empty.jsonl" / "below"):
        assert str(tmp_path / "empty.jsonl") in refusal("run", tiny_recipe, "--out", place)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.jsonl"]


def test_dry_states_what_would_be_done_and_does_nothing(
    tiny_recipe: Path, tiny_run: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = goldilocks("run", tiny_recipe, "--set", "sources.0.limit=5", "--dry")
    assert (said.status, said.err) == (0, "")
    assert f"would run curate-math in {tmp_path / 'runs' / 'tiny'}" in said.out
    assert "source school: jsonl problems.jsonl, at most 5 rows, licence MIT" in said.out
    band = "4 attempts a problem; kept with at least 1 correct and a pass rate up to"
    assert f"stage1: weak@1, {band} 0.75" in said.out
    assert f"stage2: strong@1, {band} 0.875" in said.out
    assert re.search(r"finished stages.*: nothing\n$", said.out)
    assert list(tmp_path.iterdir()) == []
    before = stamps(tiny_run.folder)
    said = goldilocks("run", tiny_recipe, "--out", tiny_run.folder, "--dry")
    assert re.search("finished stages.*: sources, statements, references, exact_dedup", said.out)
    assert stamps(tiny_run.folder) == before


def test_a_folder_without_a_run_is_one_sentence(tmp_path: Path) -> None:
    training = tmp_path / "training" / "run.json"
    training.parent.mkdir()
    training.write_text('{"kind": "training"}')
    for command in (("explain", training.parent, "3f2a"), ("review", training.parent)):
        assert "holds a training run; give the folder of the run that made its set" in refusal(*command)
    for arguments in (("status", tmp_path), ("explain", tmp_path, "3f2a"), ("status", tmp_path / "absent")):
        start = f"holds no run (no run.json); start one with `goldilocks run RECIPE --out {arguments[1]}`."
        assert f"{arguments[1]} {start}" in refusal(*arguments)
    assert list(tmp_path.iterdir()) == [training.parent]


def test_every_command_has_help() -> None:
    for typed, command in commands():
        said = goldilocks(*typed.split()[1:], "--help")
        assert said.status == 0
        assert " ".join(str(command.help).split()) in " ".join(said.out.split())
        assert [parameter.name for parameter in command.params if not getattr(parameter, "help", None)] == []


def test_a_command_that_is_not_there_is_a_usage_error() -> None:
    few_workers = ["verify", "answers", "x", "--out", "y", "--workers", "0"]
    for arguments in (["curate"], ["run"], ["run", "x.toml", "--sett", "a=1"], few_workers):
        said = goldilocks(*arguments)
        assert (said.status, said.out) == (2, "")
        assert "Traceback" not in said.err
    assert "Did you mean 'run'?" in goldilocks("rn").err
    said = goldilocks("--version")
    assert (said.status, said.out.split()[0]) == (0, "goldilocks")


WITH_PLOTS = ("RECEIPT.md", "receipt.json", ".published.json", "funnel.png", "pass_rates.png")
"""Plots are one pixel in this process (`conftest.py`), so files with their hashes differ."""


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in WITH_PLOTS)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.slow
def test_the_process_prints_only_its_own_lines_and_publishes_the_same_bytes_under_prefect(
    tiny_run: Tiny, tmp_path: Path, under_prefect: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "COLUMNS"))}
    environment |= {"PREFECT_API_URL": under_prefect, CLIENT_KEY: KEYS.service}
    command = [sys.executable, "-m", "flows.cli", "run", str(tiny_run.recipe), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert [line[:24].rstrip() for line in done.stderr.splitlines()] == TITLES
    assert "curated set and card: " in done.stdout.splitlines()[-1]
    noise = re.compile("prefect|uvicorn|flow run|task run|INFO|WARNING|ERROR|Traceback|http", re.IGNORECASE)
    assert noise.findall(done.stdout.replace(str(tmp_path), "") + done.stderr) == []
    made = Tiny(tiny_run.recipe, tmp_path / "run")
    if set(made.table("data")["measured_on"]) != set(tiny_run.table("data")["measured_on"]):
        pytest.skip("the day changed between the two runs")
    assert files(made.folder / "curated") == files(tiny_run.folder / "curated")
