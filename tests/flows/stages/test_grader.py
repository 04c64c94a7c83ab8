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
    for name, has_grader in (("demo_loop", True), ("demo_math", False)):
        run = new_run(LOOP.with_name(f"{name}.toml"), [], tmp_path)
        assert (run.recipe.grader is not None) == has_grader
        check_grader(run)


VERL = ("engine=verl", "models.student.kind='vllm'")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("none.toml", r"there is no file .*none\.toml; name a training recipe"),
        ("demo_math.toml", r"demo_math\.toml: .*`steps` is missing"),
        (("optim.rate=1",), r"grader\.toml: unknown key `optim\.rate`; allowed here: learning_rate"),
        (VERL, "/none: verl's environment is not there; make it with"),
        ((*VERL, "objective={ kind = 'soft' }"), "objective.kind = 'soft' is the embedded engine's"),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_refused_before_the_run(
    recipe: str | tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "/none")
    if not isinstance(recipe, str):
        table = tomllib.loads(LOOP.with_name("train_demo_grader.toml").read_text())
        for change in recipe:
            set_value(table, change)
        recipe = str(tmp_path / "grader.toml")
        Path(recipe).write_text(tomli_w.dumps(table))
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        check_grader(new_run(LOOP, [f"grader.recipe={recipe}"], tmp_path))
