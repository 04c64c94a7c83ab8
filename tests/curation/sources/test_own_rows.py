"""Rows that the user's own functions yield or make: streamed, the same bytes again, and errors that name them."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curation.config import Source
from curation.config.loading import parse_settings
from curation.records import ConfigError, GoldilocksError, SourceError
from curation.sources.problems import problem_rows
from curation.sources.reading import read_parts, read_source, source_digest
from tests.curation.sources.reading import read
from tests.curation.tables import check_refused

ROWS = """
def rows():
    for number in range(5):
        yield {"question": f"What is {number} + 1, as a number?", "total": str(number + 1)}
"""


def own(**settings: Any) -> Source:
    columns = {"statement": "question", "answer": "total"}
    return parse_settings(Source, {"kind": "python", "path": "rows.py:rows", "columns": columns} | settings, "source")


def test_rows_are_read_as_those_of_a_file_are(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS)
    frames = list(read_source(own(), tmp_path, 2))
    assert [frame.height for frame in frames] == [2, 2, 1]
    assert [answer for frame in frames for answer in frame["answer"]] == ["1", "2", "3", "4", "5"]
    (even,) = read_source(own(where="total in ('2', '4')"), tmp_path, 10)
    assert even["answer"].to_list() == ["2", "4"]


def test_rows_are_streamed(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS.replace("range(5)", "iter(int, 1)"))
    assert next(read_source(own(limit=1000), tmp_path, 2)).height == 2


def test_what_is_no_row_is_set_aside_and_a_failure_names_file_line_and_row(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS + "    yield 7\n")
    source = own(bad_rows=1)
    parts = list(read_parts(source, tmp_path, 10, partial(problem_rows, source)))
    assert parts[0].quarantine["reason"].to_list() == ["'7' is no dictionary with names of columns"]
    assert parts[0].quarantine["file"].to_list() == ["rows.py"]
    (tmp_path / "rows.py").write_text(ROWS + "    1 / 0\n")
    with pytest.raises(SourceError, match=r"source rows: .*rows\.py:5: ZeroDivisionError: .* \(making row 6\)"):
        list(read_source(own(), tmp_path, 10))
    (tmp_path / "rows.py").write_text("rows = 3")
    with pytest.raises(ConfigError, match=r"source rows: rows\.py:rows is a int; it must be a function"):
        list(read_source(own(), tmp_path, 10))


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


def test_a_generator_that_is_no_good_and_settings_that_cannot_be_meant_are_named(tmp_path: Path) -> None:
    check_refused("generators refused", lambda code: read(made(), generator(tmp_path, code)), GoldilocksError)
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
