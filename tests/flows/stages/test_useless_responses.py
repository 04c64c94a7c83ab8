"""A model whose answers cannot be read, through the whole line: `goldilocks run` says so once a stage, and logs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from curation.records import Completion
from flows.run.policy_session import ResponseWatch
from flows.run.run_folder import new_run
from tests.flows.conftest import Said, goldilocks, write_jsonl, write_tiny

RAMBLE = "I do not know how [bold]to[/bold] do this\x1b[31m, sorry"


def warnings(folder: Path) -> list[tuple[str, str]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(row["stage"], row["warning"]) for row in rows if "warning" in row]


@pytest.mark.slow
def test_a_stage_that_reads_no_answers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = write_tiny(tmp_path / "in")
    rows = [json.loads(line) for line in (tmp_path / "in" / "weak.jsonl").read_text().splitlines()]
    write_jsonl(
        tmp_path / "in" / "weak.jsonl", [{**row, "tries": [{"text": RAMBLE, "right": False}] * 4} for row in rows]
    )
    monkeypatch.setenv("FORCE_COLOR", "1")  # the bar is drawn, and the warning is above it
    said: Said = goldilocks("run", recipe, "--out", tmp_path / "run")
    assert said.status == 0
    ((stage, warning),) = warnings(tmp_path / "run")
    assert stage == "stage1.attempts"
    assert " responses (100 %) are of no use (no answer " in warning
    assert "look at `models.student.columns`" in warning
    assert warning.endswith('"I do not know how [bold]to[/bold] do this [31m, sorry"')
    assert said.err.count("warning: stage1.attempts: ") == 1
    assert warning in said.err.replace("\r", "")
    assert "stage2.attempts: " not in said.err


def test_other_stages_that_ask_a_model_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = new_run(write_tiny(tmp_path / "in"), [], tmp_path / "run")
    run.folder.mkdir()

    def watch(texts: Sequence[str], reason: str) -> None:
        watching = ResponseWatch(run, "premises", "student", lambda text: "VERDICT" in text)
        for number, text in enumerate(texts):
            watching.add(f"p{number % 7}", number, Completion(text, reason, 3))
        watching.close()

    watch(["VERDICT: SOUND" if number % 2 else "hm" for number in range(50)], "stop")
    assert not (run.folder / "metrics.jsonl").exists(), "half of them are of use"
    watch(["VERDICT: SOUND", *(f"hm {number}" for number in range(100))], "length")
    ((stage, warning),) = warnings(run.folder)
    assert stage == "premises"
    assert warning.startswith("31 of the first 32 responses (97 %) are of no use (cut off 31): ")
    assert warning.endswith('attempt 31: "hm 30"')
    assert capsys.readouterr().err == f"warning: premises: {warning}\n"
