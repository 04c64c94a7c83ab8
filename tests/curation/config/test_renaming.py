"""Renamed settings: an old key or value is answered with the new one, or why there is none, wherever it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from curation.config import PolicyFile, Recipe, Settings, TranslatorFile
from curation.config.loading import load_settings, parse_settings
from curation.config.renaming import key_pattern
from curation.records import ConfigError
from tests.curation.config.recipe_keys import recipe_keys
from training.recipe import TrainRecipe


class Sampling(Settings):
    early_stopping: bool = True
    policy: Policy | None = None


class Policy(Settings):
    requests: int = 1


class Stage(Settings):
    sampling: Sampling = Sampling()


class Near(Settings):
    enabled: bool = True
    same_numbers: bool = True


class Dedup(Settings):
    near: Near = Near()


class Origin(Settings):
    problem: str = "problem"
    method: Literal["exact", "near"] = "exact"


class Toy(Settings):
    """A recipe that once was called otherwise."""

    renamed: ClassVar[Mapping[str, str]] = {
        "near_duplicates.figures_agree": "dedup.near.same_numbers",
        "near_duplicates": "dedup.near",
        "stage*.sampling.curtail": "stage*.sampling.early_stopping",
        "sources.*.statement": "sources.*.problem",
        "sources.*.method = whole": "sources.*.method = exact",
        "**.policy.in_flight": "**.policy.requests",
        "words.* = false": "words.* = no",
        "flow = curate-math": "pipeline = math",
        "level = 1": "level = low",
        "likeness": "seed | a number, not a share",
        "guess": " | it found nothing; remove [guess]",
    }

    pipeline: Literal["math", "code"] = "math"
    level: Literal["low", "high"] | bool = "low"
    seed: int = 0
    dedup: Dedup = Dedup()
    stage1: Stage = Stage()
    stage2: Stage = Stage()
    sources: tuple[Origin, ...] = ()
    words: tuple[str | bool, ...] = ()
    policy: Policy = Policy()


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("stage1.sampling.curtail = true", "`stage1.sampling.curtail` is now `stage1.sampling.early_stopping`."),
        ("stage2.sampling.curtail = 'x'", "`stage2.sampling.curtail` is now `stage2.sampling.early_stopping`."),
        ("near_duplicates = { enabled = false }", "`near_duplicates` is now `dedup.near`."),
        ("sources = [{}, { statement = 'q' }]", "`sources.1.statement` is now `sources.1.problem`."),
        ("sources = [{ method = 'whole' }]", "`sources.0.method = whole` is now `sources.0.method = exact`."),
        ("policy.in_flight = 2", "`policy.in_flight` is now `policy.requests`."),
        (
            "stage1.sampling.policy.in_flight = 2",
            "`stage1.sampling.policy.in_flight` is now `stage1.sampling.policy.requests`.",
        ),
        ("words = ['x', false]", "`words.1 = false` is now `words.1 = no`."),
        ("likeness = 0.5", "`likeness` is now `seed`: a number, not a share."),
        ("guess = { often = true }", "`guess` was taken out: it found nothing; remove [guess]."),
        ("flow = 'curate-math'", "`flow = curate-math` is now `pipeline = math`."),
    ],
)
def test_an_old_key_gives_one_sentence(old: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text(f"{old}\n\n[colour]\n", encoding="utf-8")  # another mistake waits until the names are right
    with pytest.raises(ConfigError) as caught:
        load_settings(Toy, file)
    assert str(caught.value) == f"recipe {file}: {said}"
    file.write_text("", encoding="utf-8")
    override = old.replace(" = ", "=", 1)
    with pytest.raises(ConfigError) as caught:
        load_settings(Toy, file, [override])
    assert str(caught.value) == f"--set {override}: {said}"


def test_all_old_keys_are_told_at_once_and_those_inside_an_old_table_too() -> None:
    stored = json.loads('{"near_duplicates": {"figures_agree": true, "enabled": true}, "policy": {"in_flight": 3}}')
    with pytest.raises(ConfigError) as caught:
        parse_settings(Toy, stored, "recipe run.json")
    assert str(caught.value).splitlines() == [
        "recipe run.json: `near_duplicates` is now `dedup.near`.",
        "  `near_duplicates.figures_agree` is now `dedup.near.same_numbers`.",
        "  `policy.in_flight` is now `policy.requests`.",
    ]


def test_set_names_the_new_key_where_the_old_one_leads_nowhere() -> None:
    with pytest.raises(ConfigError, match=r"^--set near_duplicates\.enabled=false: `near_duplicates` is now"):
        parse_settings(Toy, {"near_duplicates": 1}, "recipe r", ["near_duplicates.enabled=false"])


@pytest.mark.parametrize(
    "table",
    [{"level": True}, {"stage1": {"sampling": {"early_stopping": False}}}, {"words": ["false"]}, {"seed": 1}],
    ids=str,
)
def test_what_is_not_old_is_read(table: dict[str, object]) -> None:
    assert parse_settings(Toy, table, "recipe r") == Toy.model_validate_json(json.dumps(table))


LISTS = {Toy: {"words.0"}, Recipe: {"decontamination.methods.0"}, TrainRecipe: set[str]()}
"""Keys of values in plain lists, which old values name."""


def stale(model: type[Settings]) -> Iterator[str]:
    """Yield the lines of a model's table whose old key is still a setting, or whose new key, if any, is none."""
    keys = {key.dotted() for key in recipe_keys(model)} | LISTS.get(model, set())
    for old, new in model.renamed.items():
        old_key, by_value, _ = old.partition(" = ")
        is_setting = any(key_pattern(old_key).fullmatch(key) for key in keys)
        leads = any(key_pattern(new.partition(" | ")[0].partition(" = ")[0]).fullmatch(key) for key in keys)
        if not (leads or new.startswith(" | ")) or (is_setting and not by_value):
            yield old


@pytest.mark.parametrize("model", [Toy, Recipe, TrainRecipe])
def test_every_old_key_is_none_any_more_and_leads_to_one(model: type[Settings]) -> None:
    assert list(stale(model)) == []


def test_a_line_that_is_wrong_is_seen() -> None:
    class Wrong(Settings):
        renamed: ClassVar[Mapping[str, str]] = {"seed": "start", "begin": "strat", "first": "start"}
        seed: int = 0
        start: int = 0

    assert list(stale(Wrong)) == ["seed", "begin"]


def test_the_old_measure_of_decontamination_is_answered_with_the_new_one() -> None:
    table = {"decontamination": {"similarity": 0.25, "methods": ["ngram", "minhash"]}}
    with pytest.raises(ConfigError) as caught:
        parse_settings(Recipe, table, "recipe r")
    similarity, method = str(caught.value).splitlines()
    assert similarity.startswith("recipe r: `decontamination.similarity` is now `decontamination.words`: a cosine")
    assert method == "  `decontamination.methods.1 = minhash` is now `decontamination.methods.1 = words`."


def test_the_difficulty_dial_is_answered_with_why_it_is_gone() -> None:
    why = "`dial` was taken out: prefixes brought no gain in training (docs/explanation/difficulty.md); remove [dial]."
    with pytest.raises(ConfigError) as caught:
        parse_settings(Recipe, {"dial": {"traces": ["attempts"], "probes": 4}}, "recipe r")
    assert str(caught.value) == f"recipe r: {why}"
    with pytest.raises(ConfigError) as caught:
        parse_settings(Recipe, {}, "recipe r", ["dial.probes=4"])
    assert str(caught.value) == f"--set dial.probes=4: {why}"


def test_policies_in_files_of_their_own_know_the_recipes_old_keys() -> None:
    assert PolicyFile.renamed is TranslatorFile.renamed is Recipe.renamed
