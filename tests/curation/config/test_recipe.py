"""Settings: described, strict, immutable, the vetted defaults, and one digest everywhere."""

from typing import Any

import pytest
from pydantic import ValidationError

from curation.config import Band, Recipe, VerifySettings, to_plain
from flows.run.recipe import load_recipe
from tests.curation.tables import check_refused
from tests.places import ROOT

POLICY = {"kind": "recorded", "name": "weak@1", "path": "attempts.jsonl", "columns": {"text": "response"}}


def recipe(**tables: Any) -> Recipe:
    """The least recipe, with some tables or values more."""
    least = {
        "name": "tiny",
        "sources": [{"name": "sheet", "kind": "jsonl", "path": "x.jsonl"}],
        "models": {"weak": POLICY},
        "stage1": {"model": "weak"},
    }
    return Recipe.model_validate(to_plain({**least, **tables}))


def test_the_defaults_are_the_vetted_ones() -> None:
    one = recipe(stage2={"model": "weak"})
    assert one.stage2 is not None
    for band, most in ((one.stage1.band, 24), (one.stage2.band, 28)):
        assert (band.attempts, band.min_correct, band.max_pass_rate * band.attempts) == (32, 2, most)
        assert (band.wrong_label_share, band.required_judged) == (0.5, 16)
    assert (one.stage1.sampling.error_rate, one.stage2.sampling.error_rate) == (0.1, 0.1)
    assert (one.seed, one.shard_rows, one.export.size, one.workers) == (0, 2000, None, None)
    assert (one.verify.limit_s, one.statements.disabled) == (2.0, ())


def test_an_impossible_band_is_refused() -> None:
    check_refused("impossible bands", lambda given: Band(**given), ValidationError)


def test_one_attempt_in_sixteen_must_be_correct_where_a_band_names_no_number() -> None:
    assert [Band(attempts=attempts).min_correct for attempts in (2, 8, 16, 31, 32, 64)] == [1, 1, 1, 1, 2, 4]
    assert Band(attempts=64, min_correct=0).min_correct == 0


def test_the_paper_s_recipes_count_as_the_paper_counts() -> None:
    math, code = (load_recipe(ROOT / "flows" / "recipes" / f"magistral_{name}.toml") for name in ("math", "code"))
    assert math.grader is not None
    for band in (math.stage1.band, math.grader.band):
        assert (band.attempts, band.min_correct, math.stage1.sampling.error_rate) == (16, 1, 0.0)
    band = code.stage1.band  # section 4.2 drops no program for its difficulty
    assert (band.attempts, band.min_correct, band.max_pass_rate) == (16, 0, 1.0)
    assert not code.stage1.sampling.early_stopping


def test_two_sources_need_two_names() -> None:
    twin = {"name": "sheet", "kind": "csv", "path": "y.csv"}
    with pytest.raises(ValidationError, match="two sources are named sheet; names must differ"):
        recipe(sources=[twin, {**twin, "name": "other"}, twin])
    assert [source.name for source in recipe(sources=[twin, {**twin, "name": "b"}]).sources] == ["sheet", "b"]
    with pytest.raises(ValidationError):
        recipe(sources=[])


def test_the_digest_follows_the_settings() -> None:
    assert recipe().digest() == recipe().digest() == recipe(seed=0).digest()
    different = [recipe(), recipe(seed=1), recipe(stage2={"model": "weak"}), recipe(verify={"limit_s": 2.5})]
    assert len({one.digest() for one in different}) == 4
    assert Band(attempts=32).digest() == Band().digest() != Band(attempts=33).digest()
    one, other = {"limit_s": 3, "response_format": "boxed"}, {"response_format": "boxed", "limit_s": 3.0}
    assert VerifySettings(**one).digest() == VerifySettings(**other).digest()
