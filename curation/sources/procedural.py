"""Rows of a generator: a task `reasoning_gym:chain_sum`, or a user's function `my_file.py:make`.

Invariant: a row depends only on its level and seed.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version as package_version
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from curation.config.sources import REASONING_GYM, Source
from curation.extras import require_extra
from curation.plugins import load_plugin
from curation.records import ConfigError, SourceError
from curation.sources.rows import RawRow, Row
from curation.verify.generator_scores import BY_GENERATOR, BY_VERIFIER, SCORE, is_scorer, task_scorer

VERSION = "procedural@2"

_ONE_ANSWER = frozenset(
    "advanced_geometry bitwise_arithmetic calendar_arithmetic chain_sum circuit_logic codeio coin_flip "
    "color_cube_rotation complex_arithmetic decimal_arithmetic decimal_chain_sum dice emoji_mystery "
    "family_relationships figlet_font game_of_life game_of_life_halting gsm_symbolic letter_jumble manipulate_matrix "
    "needle_haystack number_format number_sorting path_star polynomial_equations power_function products "
    "rectangle_count self_reference sentence_reordering simple_integration spell_backward string_insertion "
    "time_intervals zebra_puzzles".split()
)
"""Tasks with one right answer; their scorers only add partial credit or tolerance."""

_ORDERED = frozenset({"word_sequence_reversal"})
"""Tasks without scorer whose answers are ordered, which the verifier would ignore."""

Make = Callable[[Mapping[str, Any], int, int], Row]
"""Makes a row of a level's parameters, its number from 1, and a seed."""


def made_meta(made: Sequence[str]) -> pl.Expr:
    """Return the column `made` (`level`, `seed`, `reserved`) of `PROBLEM` rows, null if collected."""
    own = pl.when(pl.col("source").is_in(made)).then("meta")
    fields = pl.Struct({"level": pl.Int64, "seed": pl.Int64, "reserved": pl.Boolean})
    return own.str.json_decode(fields).alias("made")


def made_rows(source: Source, folder: Path) -> Iterator[RawRow]:
    """Yield all levels' rows with `level`, `seed`, `judged_by` and, if the generator judges, `scorer`.

    Raises:
        SourceError: the generator fails, or is not deterministic.
    """
    make, scorer = _maker(source.path, folder)[0], scorer_name(source.path, folder)
    subject = f"source {source.name}: {source.path}"
    height = source.rows_per_level + source.reserve_per_level
    for at, (level, number) in enumerate(product(range(1, len(source.parameters) + 1), range(height)), 1):
        parameters, seed = source.parameters[level - 1], source.first_seed + number
        where = f"{subject}, level {level}, seed {seed}"
        row = _made(make, parameters, level, seed, where)
        if number == 0 and row != _made(make, parameters, level, seed, where):
            raise SourceError(
                f"{subject} makes two different rows of level {level} and seed {seed}; draw only from "
                "random.Random(seed)."
            )
        if scorer is not None and row["judged_by"] == BY_GENERATOR:
            row["scorer"] = scorer.rpartition("/")[2]
        row = {**row, "reserved": number >= source.rows_per_level}
        wrong = next((name for name in ("statement", "answer") if not isinstance(row.get(name), str)), None)
        reason = f"level {level}, seed {seed}: `{wrong}` is not text" if wrong else ""
        yield RawRow(source.path, at, None, None if wrong else row, reason)


def generator_digest(source: Source, folder: Path) -> str:
    """Return a hash of the generator's file or version, and its levels."""
    levels = [source.parameters, source.rows_per_level, source.reserve_per_level, source.first_seed]
    text = f"{VERSION} {_maker(source.path, folder)[1]} {source.path} {json.dumps(levels, sort_keys=True)}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def scorer_name(generator: str, folder: Path) -> str | None:
    """Return the scorer in a generator's file (`my_file.py:score`), or None."""
    module = generator.rpartition(":")[0]
    if not module.endswith(".py"):
        return None
    name = f"{module}:{SCORE}"
    make = load_plugin(generator, folder).value
    return name if is_scorer(getattr(make, "__globals__", {}).get(SCORE)) else None


def _maker(generator: str, folder: Path) -> tuple[Make, str]:
    package, _, task = generator.rpartition(":")
    if package == REASONING_GYM:
        require_extra("procedural", f"generator = {generator!r}")
        return partial(_of_reasoning_gym, task), package_version("reasoning-gym")
    plugin = load_plugin(generator, folder)
    function = plugin.value
    if not callable(function):
        raise ConfigError(f"{generator} is not a function; write make(level, seed).")
    return lambda parameters, level, seed: function(level=level, seed=seed, **parameters), plugin.digest


def _made(make: Make, parameters: Mapping[str, Any], level: int, seed: int, where: str) -> dict[str, Any]:
    try:
        row = make(parameters, level, seed)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise SourceError(f"{where}: {last.filename}:{last.lineno}: {type(error).__name__}: {error}") from error
    if not isinstance(row, Mapping):
        raise SourceError(f"{where}: returned {type(row).__name__}, not a dictionary.")
    return {"judged_by": BY_VERIFIER, "scorer": None, **row, "level": level, "seed": seed}


def _of_reasoning_gym(task: str, parameters: Mapping[str, Any], _level: int, seed: int) -> Row:
    import reasoning_gym
    from reasoning_gym.dataset import ProceduralDataset

    dataset = reasoning_gym.create_dataset(task, size=1, seed=seed, **parameters)
    item = dataset[0]
    has_scorer = type(dataset).score_answer is not ProceduralDataset.score_answer
    needs_scorer = task in _ORDERED or (has_scorer and task not in _ONE_ANSWER)
    row = {"statement": item["question"], "answer": item["answer"]}
    if not needs_scorer:
        return {**row, "judged_by": BY_VERIFIER}
    return {**row, "judged_by": BY_GENERATOR, "scorer": task_scorer(dataset, item, task, parameters, seed)}
