"""The wheel, installed elsewhere: the command runs a recipe there, and the judge needs neither torch nor Prefect."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

RECIPE = """
name = "elsewhere"
[[sources]]
name = "sums"
kind = "jsonl"
path = "problems.jsonl"
license = "MIT"
columns = { statement = "question", answer = "answer" }
[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "recorded@1"
path = "attempts.jsonl"
columns = { problem = "question", attempts = "samples", text = "text" }
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; what it depends on is the one's that runs the tests, the checkout not."""
    folder = tmp_path_factory.mktemp("elsewhere")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "dist"), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True, timeout=300, env=clean())
    if built.returncode:
        pytest.skip(f"the wheel cannot be built here: {built.stderr.strip().splitlines()[-1:]}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    (wheel,) = (folder / "dist").glob("*.whl")
    install = ["install", "-q", "--no-deps", "--no-index", "--target", str(packages), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, env=clean())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def clean() -> dict[str, str]:
    """Variables without a path to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PREFECT_API_URL")}


def run(folder: Path, *arguments: str) -> str:
    command = [str(folder / "venv" / "bin" / "python"), *arguments]
    done = subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_command_runs_a_recipe_where_there_is_no_checkout(elsewhere: Path) -> None:
    problems = [
        {"question": f"What is {n} + {n * n}, written as a number?", "answer": str(n + n * n)} for n in range(9)
    ]
    lines = [
        {**row, "samples": [{"text": f"\\boxed{{{int(row['answer']) + (k % 3)}}}"} for k in range(16)]}
        for row in problems
    ]
    (elsewhere / "problems.jsonl").write_text("\n".join(json.dumps(row) for row in problems))
    (elsewhere / "attempts.jsonl").write_text("\n".join(json.dumps(row) for row in lines))
    (elsewhere / "elsewhere.toml").write_text(RECIPE)
    run(elsewhere, "-m", "flows.cli", "run", "elsewhere.toml")
    told = json.loads(run(elsewhere, "-m", "flows.cli", "status", "runs/elsewhere", "--json"))
    assert told
    import polars as pl

    curated = pl.read_parquet(elsewhere / "runs" / "elsewhere" / "curated" / "data" / "*.parquet")
    assert curated["pass_rate"].to_list() == [6 / 16] * curated.height
    assert 0 < curated.height <= 9


@pytest.mark.slow
def test_the_wheel_has_what_a_recipe_may_name(elsewhere: Path) -> None:
    (wheel,) = (elsewhere / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert any(name.startswith("training/embedded_model/weights/") for name in names)
    assert {"flows/cli/jobs/slurm.sbatch", "flows/cli/jobs/kubernetes.yaml", "flows/page/static/page.js"} <= names
    assert not [name for name in names if name.startswith("tests/")]


@pytest.mark.slow
def test_the_files_of_the_page_plug_in_from_a_folder_outside(elsewhere: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "plug-ins.md").read_text(encoding="utf-8")
    question = (ROOT / "docs" / "how-to" / "questions.md").read_text(encoding="utf-8")
    for name, text in re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```', page, re.MULTILINE | re.DOTALL):
        (elsewhere / name).write_text(text)
    (vote,) = re.findall(r"^```python\n(.*?)^```", question, re.MULTILINE | re.DOTALL)
    (elsewhere / "own.py").write_text(vote)
    problems = {
        "Which formula has ethanol, a liquid at room temperature?": "C2H6O",
        "What is 17 plus 25, as a number?": "42",
        "word " * 401 + "What is the sum of 4 and 7, as a number?": "11",
    }
    sums = "What is the sum of all primes below ten, as one number?"
    (elsewhere / "sums.txt").write_text("the sum of all primes below ten, as one number = 17\n")
    finals = ["CH3CH2OH CO2 CO2 CH4", "42 1 2 3", "11 1 2 3"]
    rows = [{"question": text, "answer": answer} for text, answer in problems.items()]
    tried = [
        {**row, "samples": [{"text": f"\\boxed{{{final}}}"} for final in given.split()]}
        for row, given in zip(rows, finals, strict=True)
    ]
    tried.append({"question": sums, "samples": [{"text": f"\\boxed{{{n}}}"} for n in (17, 2, 3, 4)]})
    votes = [{"question": text, "text": "VERDICT: YES"} for text in (*list(problems)[:2], sums)]
    for name, lines in (("problems", rows), ("attempts", tried), ("votes", votes)):
        (elsewhere / f"{name}.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    own = """
[[sources]]
kind = "python"
path = "rows.py:rows"
columns = { statement = "question", answer = "total" }
license = "MIT"
[verify]
judges = ["chem.py:FORMULA"]
[statements]
rules = ["rules.py:LONG"]
[questions.algebra]
use = "own.py:ALGEBRA"
model = "judge"
[models.judge]
kind = "recorded"
name = "judge@1"
path = "votes.jsonl"
columns = { problem = "question", text = "text" }
"""
    band = 'model = "student"\nband = { attempts = 4, min_correct = 1 }'
    recipe = RECIPE.replace('"elsewhere"', '"plugged"').replace('model = "student"', band, 1) + own
    (elsewhere / "plugged.toml").write_text(recipe)
    run(elsewhere, "-m", "flows.cli", "run", "plugged.toml")
    import polars as pl

    curated = elsewhere / "runs" / "plugged" / "curated"
    assert dict(pl.read_parquet(curated / "data" / "*.parquet").select("answer", "pass_rate").rows()) == {
        "C2H6O": 0.25,
        "42": 0.25,
        "17": 0.25,
    }
    assert pl.read_parquet(curated / "dropped" / "*.parquet")["reason"].to_list() == ["own_rule"]
    assert run(elsewhere, "-c", OBJECTIVE_AND_REWARD) == "my_loss.py:MyLoss 0.5\n0.1 1.1\n"


OBJECTIVE_AND_REWARD = """
from pathlib import Path
from curation.config.loading import parse_settings
from curation.records import Domain, Outcome
from training.config import RewardSettings
from training.objectives.registry import objective_of, own_settings
from training.rewards import RewardInputs, compute_reward
settings = own_settings({"kind": "my_loss.py:MyLoss", "bound": 0.5}, Path())
assert objective_of(settings).settings is type(settings)
print(settings.kind.partition("@")[0], settings.bound)
table = {"language": 0.0, "components": ["brief.py:BRIEF"]}
settings = parse_settings(RewardSettings, table, "rewards", folder=Path())
solved = RewardInputs(Domain.MATH, "2 + 2?", "<think>x</think> \\\\boxed{4}", 9, Outcome.CORRECT)
found = compute_reward(solved, settings)
print(found.own, round(found.total, 6))
"""
