"""Judges of answers and format rules of the user's own, from files next to the recipe, through the whole pipeline."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest

from curation.publish.export_formats import export_set
from curation.records import SourceError, problem_id
from curation.scoring.scorer import Scorer, ScoringSettings
from flows.publish.versions import RefreshedRun
from flows.run.run_folder import open_run
from flows.stages.judging import own_judges
from tests.curation.verify.test_own_judges import CHEMISTRY
from tests.flows.conftest import TINY_RECIPE, goldilocks, published, tries, write_jsonl
from tests.flows.run.folders import card, run

OWN = tomllib.loads(Path(__file__).with_name("own_plugins.toml").read_text(encoding="utf-8"))
PROBLEMS = {
    "Which formula has dimethyl ether, a gas at room temperature?": ("C2H6O", "CH3OCH3 C2H6O CO2 CO2"),
    "Which formula has ethanol, written as a sum of atoms?": ("C2H6O", "CH3CH2OH C2H6O CO2 CO2"),
    "What is 17 times 25, written as one number?": ("425", "425 425 1 2"),
}
STAGE1 = TINY_RECIPE.partition("[stage2]")[0]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    home = tmp_path / "inputs"
    home.mkdir()
    (home / "chem.py").write_text(CHEMISTRY)
    (home / "own.py").write_text(OWN["rule"])
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": one} for text, (one, _) in PROBLEMS.items()])
    write_jsonl(home / "weak.jsonl", [tries(text, *one) for text, one in PROBLEMS.items()])
    own = '[verify]\njudges = ["chem.py:FORMULA"]\n[statements]\nrules = ["own.py:RULE"]\n'
    (home / "tiny.toml").write_text(STAGE1 + own)
    return home / "tiny.toml"


@pytest.mark.slow
def test_a_set_is_made_and_scored_by_the_users_own_files(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, curated = tmp_path / "run", tmp_path / "run" / "curated"
    run(recipe, folder)
    assert dict(published(folder, "data").select("answer", "pass_rate").rows()) == {"C2H6O": 0.5, "425": 0.5}
    dropped = published(folder, "dropped").select("reason", "evidence").rows()
    assert dropped == [("own_rule", "own.py:RULE: 5 signs")]
    assert "a rule of the set's maker" in card(folder)
    assert "own_rule" in goldilocks("status", folder).out

    exported = export_set(curated, "trl", tmp_path / "trl")
    (label,) = json.loads((curated / "judges.json").read_text())
    assert label.startswith("chem.py:FORMULA@")
    readme = (exported.file.parent / "README.md").read_text()
    assert "GOLDILOCKS_JUDGES=path/to/chem.py:FORMULA" in readme
    assert label in readme
    (record,) = [one for one in pl.read_parquet(exported.file)["goldilocks"] if "C2H6O" in one]
    asked = [(record, r"\boxed{CH3OCH3}"), (record, r"\boxed{CO2}")]
    with Scorer() as plain, pytest.raises(SourceError, match=r"was measured with the judge chem\.py:FORMULA"):
        plain.score(asked)
    named = ScoringSettings(workers=1, judges=(f"{recipe.parent / 'chem.py'}:FORMULA",))
    with Scorer(named) as scorer:
        assert [one.reward for one in scorer.score(asked)] == [1.0, 0.0]
    monkeypatch.setenv("GOLDILOCKS_JUDGES", named.judges[0])
    with Scorer() as scorer:
        assert [one.reward for one in scorer.score(asked)] == [1.0, 0.0]

    (recipe.parent / "chem.py").write_text(CHEMISTRY.replace('"?" not in answer', '"CH3" not in answer'))
    with Scorer(named) as changed, pytest.raises(SourceError, match=r"available: chem\.py:FORMULA@"):
        changed.score(asked)
    run(recipe, folder)
    assert dict(published(folder, "data").select("answer", "pass_rate").rows()) == {"C2H6O": 0.25, "425": 0.5}
    made = open_run(folder)
    refreshed = RefreshedRun(folder, made.recipe, tmp_path / "checkpoint", tmp_path / "version")
    assert own_judges(refreshed) == own_judges(made) != []


def test_mistakes_of_plugins_name_the_file_the_line_and_the_row(recipe: Path, tmp_path: Path) -> None:
    (recipe.parent / "own.py").write_text(OWN["rule"].replace('f"{len(answer)} signs"', "answer.missing"))
    why = goldilocks("run", recipe, "--out", tmp_path / "run").err
    assert f"{recipe.parent / 'own.py'}:3: AttributeError" in why
    assert "(row 1 of source school, problem " in why
    recipe.write_text(recipe.read_text().replace(":RULE", ":Rule"))
    assert "must be an object with the method `drop`" in goldilocks("run", recipe, "--out", tmp_path / "new").err


SOURCE = Path(__file__).with_name("cells.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_made_rows_that_the_verifier_cannot_read_are_judged_by_their_generators_scorer(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(OWN["cells"])
    (tmp_path / "cells.toml").write_text(f"{SOURCE}[stage1]{STAGE1.partition('[stage1]')[2]}")
    finals = {2: "..## #..# #.# x", 3: "... ## # .", 4: "__## ##__ x y"}
    made = {seed: f"Draw {seed} empty cells and {seed} full ones." for seed in finals}
    write_jsonl(tmp_path / "weak.jsonl", [tries(made[seed], None, finals[seed]) for seed in made])
    run(tmp_path / "cells.toml", tmp_path / "run")
    rates = published(tmp_path / "run", "data").select("answer", "pass_rate").rows()
    assert rates == [("#.#.", 0.5), ("##__", 0.5)]
    verdicts = pl.read_parquet(tmp_path / "run" / "verdicts" / "stage1" / "*" / "verdicts" / "*.parquet")
    of_scorer = verdicts.filter(pl.col("problem").is_in([problem_id(made[2]), problem_id(made[4])]))
    assert set(of_scorer["method"]) == {"cells.py:score"}
