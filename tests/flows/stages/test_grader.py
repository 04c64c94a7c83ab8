"""The grader's training recipe: read before a run begins, as the grader will be trained by it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import tomli_w

import flows
from curation.config.loading import set_value
from curation.records import ConfigError
from flows.run.run_folder import new_run
from flows.stages.grader import check_grader
from training.engines.verl.environment import VARIABLE

LOOP = Path(flows.__file__).parent / "recipes" / "demo_loop.toml"


@pytest.mark.slow
def test_the_shipped_recipe_of_a_grader_is_one(tmp_path: Path) -> None:
    shipped, without = (new_run(LOOP.with_name(f"{name}.toml"), [], tmp_path) for name in ("demo_loop", "demo_math"))
    assert (shipped.recipe.grader is None, without.recipe.grader is None) == (False, True)
    check_grader(shipped)
    check_grader(without)


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("none.toml", r"there is no file .*none\.toml; name a training recipe"),
        ("demo_math.toml", r"demo_math\.toml: .*`steps` is missing"),
        (["optim.rate=1"], r"grader\.toml: unknown key `optim\.rate`; allowed here: learning_rate"),
        (["engine=verl", "models.student.kind='vllm'"], "/none: there is no environment of verl; make it with"),
        (
            ["engine=verl", "models.student.kind='vllm'", "objective={ kind = 'soft' }"],
            "not with engine = \"verl\": objective.kind = 'soft' needs a second pass or has no groups",
        ),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_refused_before_the_run(
    recipe: str | list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "/none")
    if isinstance(recipe, list):
        table = tomllib.loads(LOOP.with_name("train_demo_grader.toml").read_text())
        for change in recipe:
            set_value(table, change)
        recipe = str(tmp_path / "grader.toml")
        Path(recipe).write_text(tomli_w.dumps(table))
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        check_grader(new_run(LOOP, [f"grader.recipe={recipe}"], tmp_path))
