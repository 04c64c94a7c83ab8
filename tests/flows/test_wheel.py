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

from tests.flows.conftest import ROOT, TINY_RECIPE, Tiny, published, tries, write_jsonl, write_tiny


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
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PREFECT_API_URL")}


def run(folder: Path, *arguments: str) -> str:
    command = [str(folder / "venv" / "bin" / "python"), *arguments]
    done = subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_command_runs_a_recipe_where_there_is_no_checkout(elsewhere: Path, tiny_run: Tiny) -> None:
    write_tiny(elsewhere / "in")
    run(elsewhere, "-m", "flows.cli", "run", "in/tiny.toml")
    assert json.loads(run(elsewhere, "-m", "flows.cli", "status", "runs/tiny", "--json"))
    kept, expected = (published(folder, "data") for folder in (elsewhere / "runs" / "tiny", tiny_run.folder))
    assert kept.select("id", "pass_rate").rows() == expected.select("id", "pass_rate").rows() != []


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
    finals = ["CH3CH2OH CO2 CO2 CH4", "42 1 2 3", "11 1 2 3", "17 2 3 4"]
    rows = [{"question": text, "final": answer} for text, answer in problems.items()]
    write_jsonl(elsewhere / "problems.jsonl", rows)
    tried = zip((*problems, sums), finals, strict=True)
    write_jsonl(elsewhere / "weak.jsonl", [tries(text, None, given) for text, given in tried])
    votes = [{"question": text, "text": "VERDICT: YES"} for text in (*list(problems)[:2], sums)]
    write_jsonl(elsewhere / "votes.jsonl", votes)
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
    recipe = TINY_RECIPE.partition("[stage2]")[0].replace('"tiny"', '"plugged"')
    (elsewhere / "plugged.toml").write_text(recipe + own)
    run(elsewhere, "-m", "flows.cli", "run", "plugged.toml")
    folder = elsewhere / "runs" / "plugged"
    assert dict(published(folder, "data").select("answer", "pass_rate").rows()) == dict.fromkeys(
        ("C2H6O", "42", "17"), 0.25
    )
    assert published(folder, "dropped")["reason"].to_list() == ["own_rule"]
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
