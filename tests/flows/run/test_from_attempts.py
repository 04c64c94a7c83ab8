"""`goldilocks train --data attempts`: what it changes of a recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.records import ConfigError
from flows.run.training import from_attempts, load_train_recipe
from tests.places import ROOT

RECIPES = ROOT / "flows" / "recipes"


def test_a_recipe_without_stored_attempts_starts_from_them_by_an_objective_that_can() -> None:
    recipe = RECIPES / "train_embedded.toml"
    made = load_train_recipe(recipe, from_attempts(recipe, ["steps=7"]))
    assert made.steps == 7
    assert made.objective.kind == "soft"
    assert made.stored is not None
    assert made.stored.epochs == 1.0


def test_a_recipe_that_says_how_keeps_its_word() -> None:
    recipe = RECIPES / "train_cold_start.toml"
    assert from_attempts(recipe) == []
    for name in ("train_cold_start", "train_after_cold_start", "train_from_attempts", "train_latent"):
        load_train_recipe(RECIPES / f"{name}.toml")


@pytest.mark.parametrize(
    ("recipe", "data", "said"),
    [(None, "attempts", "needs a recipe"), (RECIPES / "train_embedded.toml", "everything", "--data everything")],
)
def test_what_it_cannot_be_asked_is_refused(recipe: Path | None, data: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        from_attempts(recipe, [], data)
