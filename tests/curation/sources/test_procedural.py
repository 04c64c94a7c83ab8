"""Made rows: the same bytes of the same levels and seeds, and a sentence about a generator that is no good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.config import Source
from curation.config.loading import parse_settings
from curation.records import ConfigError, GoldilocksError
from curation.sources.reading import read_source, source_digest
from tests.curation.tables import check_refused

SUMS = """
from random import Random

def make(level, seed, step=1):
    draw = Random(f"{level} {seed}")
    terms = [draw.randrange(100) for _ in range(level * step + 1)]
    return {"statement": " + ".join(map(str, terms)), "answer": str(sum(terms))}
"""


def made(**settings: Any) -> Source:
    table = {"kind": "procedural", "generator": "sums.py:make", "levels": 2, "rows_per_level": 3}
    return parse_settings(Source, table | settings, "source")


def generator(folder: Path, code: str = SUMS) -> Path:
    (folder / "sums.py").write_text(code)
    return folder


def read(source: Source, folder: Path, batch_rows: int = 4) -> pl.DataFrame:
    return pl.concat(read_source(source, folder, batch_rows))


def test_each_row_carries_what_it_was_made_from(tmp_path: Path) -> None:
    rows = read(made(first_seed=7), generator(tmp_path))
    origin = [json.loads(meta) for meta in rows["meta"]]
    assert [(one["level"], one["seed"]) for one in origin] == [(1, 7), (1, 8), (1, 9), (2, 7), (2, 8), (2, 9)]
    assert [text.count("+") for text in rows["statement"]] == [1, 1, 1, 2, 2, 2]
    assert [str(eval(text)) for text in rows["statement"]] == rows["answer"].to_list()
    assert rows.equals(read(made(first_seed=7), tmp_path, batch_rows=1))


def test_the_digest_follows_the_code_the_levels_and_the_seeds(tmp_path: Path) -> None:
    generator(tmp_path)
    others = [made(), made(levels=3), made(rows_per_level=4), made(first_seed=1), made(levels=[{"step": 1}, {}])]
    digests = [source_digest(source, tmp_path) for source in others]
    assert digests[0] == source_digest(made(), tmp_path)
    generator(tmp_path, f"{SUMS}\n# changed")
    assert len({*digests, source_digest(made(), tmp_path)}) == len(digests) + 1


def test_a_generator_that_is_no_good_is_named(tmp_path: Path) -> None:
    check_refused("generators refused", lambda code: read(made(), generator(tmp_path, code)), GoldilocksError)


def test_settings_that_cannot_be_meant() -> None:
    check_refused("procedural settings refused", lambda given: parse_settings(Source, given, "source"), ConfigError)


def test_a_task_of_reasoning_gym_makes_rows_by_its_parameters(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    levels = [{"min_terms": 2, "max_terms": 2}, {"min_terms": 5, "max_terms": 5}]
    source = made(generator="reasoning_gym:chain_sum", levels=levels)
    rows = read(source, tmp_path)
    assert (source.name, rows.height) == ("chain_sum", 6)
    assert rows.equals(read(source, tmp_path, batch_rows=1))
    for task, judge in (("countdown", "generator"), ("word_sequence_reversal", "generator"), ("dice", "verifier")):
        of_task = read(made(generator=f"reasoning_gym:{task}", levels=[{}], rows_per_level=1), tmp_path)
        assert json.loads(of_task["meta"][0])["judged_by"] == judge
