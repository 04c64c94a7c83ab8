"""`goldilocks run` on problems that ask for a function, in the forms of MBPP and HumanEval: a set comes out."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission
from curation.verify.programs.tables import set_problems
from curation.verify.programs.tools import Runner
from flows.cli.commands import run_recipe
from tests.flows.conftest import write_jsonl

MBPP = {
    "text": "Write a function to find the shared elements of the two given lists, in ascending order.",
    "code": "def shared(a, b):\n    return sorted(set(a) & set(b))",
    "test_list": ["assert shared([3, 4, 5], [5, 4]) == [4, 5]", "assert shared([1], [2]) == []"],
    "test_setup_code": "",
}
HUMANEVAL = {
    "prompt": 'def area(r):\n    """Return the area of a circle of this radius, as a decimal number."""\n',
    "entry_point": "area",
    "canonical_solution": "    return 3.14159265 * r * r\n",
    "test": "def check(candidate):\n    assert abs(candidate(1) - 3.14159) < 1e-3\n",
}
RECIPE = Path(__file__).with_name("functions.toml").read_text(encoding="utf-8")
LINE = "Write the function in Python 3."


def test_functions_are_curated_and_judged_by_their_asserts(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "mbpp.jsonl", [MBPP])
    write_jsonl(tmp_path / "humaneval.jsonl", [HUMANEVAL])
    asked = f"{MBPP['text']}\n\nThe function is called as in `{MBPP['test_list'][0]}`.\n\n{LINE}"
    right, wrong = f"```python\n{MBPP['code']}\n```", "```python\ndef shared(a, b): return a\n```"
    rows = [{"problem": asked, "text": text} for text in (right, wrong, right, wrong)]
    asked = f"{HUMANEVAL['prompt'].strip()}\n\n{LINE}"
    right = f"```python\n{HUMANEVAL['prompt']}{HUMANEVAL['canonical_solution']}```"
    rows += [{"problem": asked, "text": text} for text in (right, "none", "none", "none")]
    write_jsonl(tmp_path / "attempts.jsonl", rows)
    (tmp_path / "functions.toml").write_text(RECIPE)
    run_recipe(tmp_path / "functions.toml", [], tmp_path / "run")
    curated = tmp_path / "run" / "curated"
    data = pl.read_parquet(curated / "data" / "*.parquet").sort("source", descending=True)
    assert data["source"].to_list() == ["mbpp", "humaneval"]
    assert data["correct"].to_list() == [2, 1]
    groups = {row["id"]: (row["group"], CodeLang.PYTHON) for row in data.iter_rows(named=True)}
    problems = set_problems(curated, groups)
    submissions = [Submission(CodeLang.PYTHON, text) for text in (MBPP["code"], "def area(r): return 3 * r")]
    with Runner(1) as runner:
        jobs = zip((problems[name] for name in data["id"]), submissions, strict=True)
        assert [one.verdict for one in judge_programs(runner, jobs)] == [CodeVerdict.AC, CodeVerdict.WA]
