"""`goldilocks verify code`: files in, a file of verdicts out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.records import SourceError
from curation.verify.programs.files import problem_of_row, read_problems
from flows.cli.tools import code as verify_code_file

PROBLEMS = [
    {"id": "next", "tests": [{"input": "1\n", "output": "2\n"}, {"input": "8\n", "output": "9\n"}], "time_limit_s": 2}
]
SUBMISSIONS = [
    {"id": "a", "problem": "next", "lang": "python", "code": "print(int(input()) + 1)"},
    {"id": "b", "problem": "next", "lang": "python", "code": "print(2)"},
    {"id": "c", "problem": "next", "lang": "cpp", "code": "int main() { return nothing; }"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_of_submissions_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    verify_code_file(write(tmp_path / "p.jsonl", PROBLEMS), write(tmp_path / "s.jsonl", SUBMISSIONS), out, workers=2)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["verdict"]) for row in rows] == [("a", "AC"), ("b", "WA"), ("c", "CE")]
    assert rows[1]["first_failed"] == 1
    assert [run["verdict"] for run in rows[1]["tests"]] == ["AC", "WA"]
    assert set(rows[0]["tests"][0]) == {"index", "verdict", "time_s", "wall_s", "memory_mb", "method"}
    printed = capsys.readouterr().out
    assert "3 programs: AC 1, WA 1, CE 1" in printed
    assert "sandbox" in printed


def test_responses_may_think_in_other_tags_and_end_in_an_open_block(tmp_path: Path) -> None:
    draft, program = "\n```python\nprint(2)\n```\n", "```python\nprint(int(input()) + 1)\n"
    rows = [
        {"id": "whole", "problem": "next", "response": f"[THINK]{draft}[/THINK]{program}```"},
        {"id": "open", "problem": "next", "response": f"[THINK]{draft}[/THINK]{program}", "finish": "stop"},
        {"id": "cut", "problem": "next", "response": f"[THINK]{draft}[/THINK]{program}"},
    ]
    problems, submissions = write(tmp_path / "p.jsonl", PROBLEMS), write(tmp_path / "s.jsonl", rows)
    verdicts = []
    for thinking in ("[THINK]", "<think>"):
        verify_code_file(problems, submissions, tmp_path / "out.jsonl", workers=2, thinking=thinking)
        verdicts.append([json.loads(line)["verdict"] for line in (tmp_path / "out.jsonl").read_text().splitlines()])
    assert verdicts == [["AC", "AC", "NA"], ["WA", "WA", "WA"]]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"tests": []}, "id is None"),
        ({"id": "x", "tests": [{"input": "1"}]}, "KeyError"),
        ({"id": "x", "tests": [{"input": 1, "output": "1"}]}, "strings"),
        ({"id": "x", "tests": [], "time_limit_s": 0}, "time_limit_s"),
        ({"id": "x", "tests": [], "checker": "float_tolerance"}, "validator flags"),
        ({"id": "x", "tests": [], "checker": {"kind": "other", "lang": "python", "sources": {}}}, "other"),
        ({"id": "x", "function": {"entry": "f"}}, "either calls or a program"),
    ],
)
def test_a_row_that_is_no_problem_is_named(row: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=r"here: ") as caught:
        problem_of_row(row, "here")
    assert said in str(caught.value)


def test_bad_lines_are_named_and_nothing_is_left(tmp_path: Path) -> None:
    problems = write(tmp_path / "p.jsonl", PROBLEMS)
    for row, said in (
        ({"id": "a", "problem": "nowhere", "lang": "python", "code": ""}, "nowhere"),
        ({"id": "a", "problem": "next", "lang": "cobol", "code": ""}, "cobol"),
        ({"id": "a", "problem": "next", "lang": "python"}, "code must be a string"),
    ):
        out = tmp_path / "out.jsonl"
        with pytest.raises(SourceError, match="line 1") as caught:
            verify_code_file(problems, write(tmp_path / "s.jsonl", [row]), out, workers=1)
        assert said in str(caught.value)
        assert not out.exists()
    with pytest.raises(SourceError, match="is used twice"):
        read_problems(write(tmp_path / "twice.jsonl", [PROBLEMS[0], PROBLEMS[0]]))
    with pytest.raises(SourceError, match="there is no such file"):
        read_problems(tmp_path / "missing.jsonl")
