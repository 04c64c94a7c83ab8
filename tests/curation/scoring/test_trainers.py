"""Exported rows, judged by the reward function of their trainer: the verdicts of the set, whoever asks."""

import asyncio
import json
import os
import subprocess
import sys
from importlib.metadata import distribution, files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from curation.records import SourceError
from curation.scoring.record import read_record, record_of
from curation.scoring.trainers import art_reward, trl_reward, verifiers_reward
from tests.places import ROOT


def math_record(answer: str = "42", **others: str) -> dict[str, Any]:
    told = {"goldilocks": 1, "id": "m", "domain": "math", "lang": "en", "statement": "What is 6 times 7?"}
    return {**told, "answer": answer, **others}


def test_a_message_with_thoughts_has_the_same_verdict_everywhere() -> None:
    chat = [{"role": "assistant", "content": "so \\boxed{42}", "reasoning_content": "41? \\boxed{41}"}]
    for answer, worth in (("42", 1.0), ("41", 0.0)):
        info = {"goldilocks": json.dumps(math_record(answer))}
        assert trl_reward([chat], goldilocks=[info["goldilocks"]], workers=1) == [worth]
        assert asyncio.run(verifiers_reward(chat, info)) == worth
        trajectory = SimpleNamespace(messages=lambda: chat, metadata={}, metrics={})
        assert asyncio.run(art_reward(info, trajectory)) == worth


def test_a_message_that_cannot_be_read_is_not_judged() -> None:
    record = json.dumps(math_record())
    chats = [[{"role": "assistant", "content": [{"type": "audio"}]}], [{"role": "assistant", "content": "\\boxed{42}"}]]
    assert trl_reward(chats, goldilocks=[record, record], workers=1) == [None, 1.0]
    trajectory = SimpleNamespace(messages=lambda: chats[0], metadata={}, metrics={})
    assert asyncio.run(art_reward({"goldilocks": record}, trajectory)) == 0.0
    assert trajectory.metrics["verifier_failed"] is True


def test_a_record_says_how_responses_to_its_problem_are_read() -> None:
    record = math_record()
    thought = "[THINK]\\boxed{1}, no[/THINK] so \\boxed{42}"
    cut = "[THINK] it may be \\boxed{42}"
    for text, worth in ((thought, 1.0), (cut, 0.0)):
        assert trl_reward([text], goldilocks=[json.dumps({**record, "thinking": "[THINK]"})], workers=1) == [worth]
    tagged = {**record, "response_format": "<answer>"}
    said = "<answer>42</answer>, not \\boxed{7}"
    assert trl_reward([said], goldilocks=[json.dumps(tagged)], workers=1) == [1.0]
    assert trl_reward([said], goldilocks=[json.dumps(tagged)], workers=1, response_format="boxed") == [0.0]


def test_an_opened_choice_may_be_answered_by_its_letter() -> None:
    row = {"id": "m", "domain": "math", "lang": "en", "statement": "What is 40 + 2?", "answer": "42"}
    record = record_of({**row, "raw_answer": "B"}, None)
    assert json.loads(record)["letter"] == "B"
    assert trl_reward(["\\boxed{B}", "\\boxed{C}"], goldilocks=[record] * 2, workers=1) == [1.0, 0.0]
    assert "letter" not in json.loads(record_of({**row, "raw_answer": "42"}, None))


def test_a_record_of_another_version_is_refused() -> None:
    with pytest.raises(SourceError, match="the record has version 9, and this Goldilocks reads 1"):
        read_record({**math_record(), "goldilocks": 9})


JUDGE_ALONE = """
import json, sys
from curation.scoring import Scorer, ScoringSettings
if __name__ == "__main__":
    with Scorer(ScoringSettings(workers=1)) as scorer:
        scores = scorer.score(json.loads(sys.argv[1]))
    print(json.dumps([score.outcome for score in scores]))
"""
NEEDED = ("polars", "orjson", "python-flint", "sympy")
"""What the judge imports, as docs/reference/exports.md says; each brings what stands beside it."""


@pytest.mark.slow
def test_the_judge_alone_needs_four_packages(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    names = [*NEEDED, "polars-runtime-32", "mpmath"]
    for file in (file for name in names for file in files(name) or ()):
        top = Path(file).parts[0]
        if top not in ("..", "/") and not (packages / top).exists():
            (packages / top).symlink_to(distribution("polars").locate_file(top))
    (packages / "curation").symlink_to(ROOT / "curation")
    math = json.dumps(math_record("\\sin(x)^2"))
    told = {"goldilocks": 1, "id": "c", "domain": "code", "lang": "en", "statement": "Print it."}
    program = {"id": "c", "language": "python", "tests": [{"input": "", "output": "2\n"}]}
    code = json.dumps({**told, "program": program})
    pairs = [(math, "\\boxed{1 - \\cos(x)^2}"), (code, "```python\nprint(2)\n```")]
    command = [str(tmp_path / "venv" / "bin" / "python"), "-c", JUDGE_ALONE, json.dumps(pairs)]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=clean)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["correct", "correct"]
    assert all(name in (ROOT / "docs" / "reference" / "exports.md").read_text() for name in NEEDED)
