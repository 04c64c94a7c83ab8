"""A refresh of a larger set by a stronger policy: its anchor, what it judges for it, and that nothing is done twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from curation.records import PolicyError
from flows.cli.commands import refresh_run
from flows.pipelines.refresh import RefreshResult
from flows.publish.versions import scan_decisions, stored_versions
from tests.curation.difficulty.simulated import simulated_rates
from tests.flows.conftest import Tiny, goldilocks, tries, write_jsonl

pytestmark = pytest.mark.slow

PROBLEMS, ATTEMPTS = 240, 16
RECIPE = """
name = "tiers"
shard_rows = 100
workers = 1

[near_dedup]
enabled = false # sums are alike

[[sources]]
name = "sums"
kind = "jsonl"
path = "sums.jsonl"
license = "MIT"
columns = { statement = "question", answer = "final", meta = ["rate"] }

[stage1]
model = "student"
band = { attempts = 16, wrong_label_share = 1.0 }

[models.student]
kind = "recorded"
name = "tier@1"
path = "tier1.jsonl"
columns = { problem = "question", attempts = "tries", text = "text" }
"""


def sums() -> list[tuple[str, int]]:
    return [(f"What is {1000 + 7 * number} + {13 * number + 5}?", 1005 + 20 * number) for number in range(PROBLEMS)]


def write_tier(folder: Path, number: int, rates: np.ndarray) -> None:
    """The attempts of a policy with these pass rates; a wrong one is far from every other."""
    rng = np.random.default_rng(number)
    rows = []
    for (statement, answer), rate in zip(sums(), rates, strict=True):
        right = rng.random(ATTEMPTS) < rate
        finals = [answer if is_right else -1 - place for place, is_right in enumerate(right)]
        rows.append(tries(statement, str(answer), " ".join(map(str, finals))))
    write_jsonl(folder / f"tier{number}.jsonl", rows)
    policy = 'kind = "recorded"\ncolumns = { problem = "question", attempts = "tries", text = "text" }\n'
    (folder / f"tier{number}.toml").write_text(
        f'[models.newer]\nname = "tier@{number}"\npath = "tier{number}.jsonl"\n{policy}'
    )


@pytest.fixture(scope="module")
def tiers(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A run judged by one policy; the attempts of one that is 2 logits better lie beside it."""
    home = tmp_path_factory.mktemp("tiers")
    write_jsonl(home / "sums.jsonl", [{"question": text, "final": str(answer), "rate": 0.5} for text, answer in sums()])
    for number, rates in enumerate(simulated_rates(PROBLEMS, {"1": 0.0, "2": 2.0}, 20.0, seed=1).values(), 1):
        write_tier(home, number, rates)
    (home / "recipe.toml").write_text(RECIPE)
    said = goldilocks("run", home / "recipe.toml", "--out", home / "run")
    assert said.status == 0, said.err
    return Tiny(home / "recipe.toml", home / "run")


@pytest.fixture(scope="module")
def refreshed(tiers: Tiny) -> RefreshResult:
    return refresh_run(tiers.folder, tiers.recipe.parent / "tier2.toml", None)


@pytest.fixture
def collapsed(tiers: Tiny, tmp_path: Path) -> tuple[Tiny, Path]:
    """A run judged once, and a checkpoint that answers one problem of a hundred and has one slip at all others."""
    copy = tiers.copy(tmp_path)
    for folder in copy.folder.glob("versions/0002"):
        shutil.rmtree(folder)
    assert copy.run().status == 0
    rows = [tries(text, str(answer), " ".join([str(answer - 1)] * ATTEMPTS)) for text, answer in sums()]
    for row, (text, answer) in list(zip(rows, sums(), strict=True))[::100]:
        row |= tries(text, str(answer), " ".join([str(answer)] * ATTEMPTS))
    write_jsonl(tmp_path / "inputs" / "tier2.jsonl", rows)
    return copy, tmp_path / "inputs" / "tier2.toml"


def test_a_collapsed_checkpoint_publishes_nothing_unless_it_is_accepted(collapsed: tuple[Tiny, Path]) -> None:
    run, policy = collapsed
    before = run.table("data")
    with pytest.raises(PolicyError, match="is far weaker than the policy before it, so no version was published"):
        refresh_run(run.folder, policy)
    assert [version.number for version in stored_versions(run.folder)] == [1]
    assert run.table("data").equals(before)
    with pytest.raises(PolicyError, match="logits against tier@1"):
        refresh_run(run.folder, policy)
    result = refresh_run(run.folder, policy, accept=True)
    assert result.is_new
    assert "suspected_wrong_label" not in scan_decisions(run.folder, 2).collect()["reason"].to_list()


def full_judgement(tiers: Tiny, home: Path) -> dict[str, str | None]:
    """The reasons of a run of its own by the better policy, with a refresh's band."""
    recipe = tiers.recipe.parent / "full.toml"
    text = RECIPE.replace("tier@1", "tier@2").replace("tier1.jsonl", "tier2.jsonl")
    recipe.write_text(text.replace("attempts = 16,", "attempts = 16, max_pass_rate = 0.99,"))
    said = goldilocks("run", recipe, "--out", home / "full")
    assert said.status == 0, said.err
    return dict(scan_decisions(home / "full", 1).collect().select("problem", "reason").iter_rows())


def test_what_was_never_solved_comes_back_without_a_share_for_it(
    tiers: Tiny, refreshed: RefreshResult, tmp_path: Path
) -> None:
    assert refreshed.forecast is not None
    assert refreshed.forecast.anchor.problems == refreshed.chosen["anchor"] == 50  # the least, above the share
    assert refreshed.forecast.anchor.shift == pytest.approx(2.0, abs=0.6)
    assert refreshed.chosen.keys() == {"anchor", "shifted"}
    assert refreshed.cost["problems"] < 0.95 * PROBLEMS
    full, made = full_judgement(tiers, tmp_path), scan_decisions(tiers.folder, 2).collect()
    inside = {name for name, reason in full.items() if reason is None}
    missed = inside - set(made.filter("keep")["problem"])
    assert len(missed) <= 0.03 * len(inside)
    differ = [name for name, reason in made.select("problem", "reason").iter_rows() if full[name] != reason]
    assert len(differ) <= 0.04 * PROBLEMS
    before = dict(scan_decisions(tiers.folder, 1).collect().select("problem", "reason").iter_rows())
    assert sum(before[name] == "never_solved" for name in inside) > 10
