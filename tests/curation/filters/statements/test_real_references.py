"""Real references and options of every set: what rewrites them leaves each the same by the verifier, or as it was."""

import json
import re
from collections.abc import Iterator
from functools import cache

import polars as pl
import pytest

from curation.filters.multiple_choice import sound_option, tidy_answer
from curation.filters.statements.cleaning import cleaned, decoded
from curation.options import strip_label
from curation.records import PROBLEM, Outcome
from curation.verify.answers import compare
from tests.places import SHARED_DATA

DATA = SHARED_DATA / "math"
_LABEL = re.compile(r"^[(（]?([A-J])\s?[)）.．、:]")


@cache
def real_texts() -> tuple[list[str], list[str]]:
    """All answers and all options of the sets, each once."""
    files = sorted(DATA.glob("*.jsonl"))
    if not files:
        pytest.skip(f"no real data at {DATA}; set GOLDILOCKS_DATA to the folder that holds math/")
    answers: dict[str, None] = {}
    options: dict[str, None] = {}
    for file in files:
        for line in file.read_bytes().splitlines():
            row = json.loads(line)
            if row["answer"] is not None:
                answers[str(row["answer"])] = None
            for option in row.get("choices") or ():
                label = _LABEL.match(option)
                options[strip_label(option, ord(label[1]) - ord("A")) if label else option] = None
    return list(answers), list(options)


def rewritten(texts: list[str]) -> Iterator[tuple[str, str]]:
    """What the filter makes of texts as answers, and of them as options that become answers; only what changed.

    Of each beside it what is cleaned: names of characters as these characters, and a tie as the blank that it is.
    """
    frame = pl.DataFrame({"answer": texts}).with_row_index("_at")
    names = ("statement", "choices", "lang", "source", "meta")
    absent = [pl.lit(None, dtype=PROBLEM[name]).alias(name) for name in names]
    clean = cleaned(frame.with_columns(absent))["answer"]
    for text, same, new in zip(texts, decoded(pl.Series(texts)), clean, strict=True):
        option, unclean = tidy_answer(sound_option(new)), tidy_answer(sound_option(text))
        for old, after in {(same, new), (same, option), (text, unclean)}:
            if after != text:
                yield old.replace("~", " "), after.replace("~", " ")


def test_no_rewriting_of_a_real_reference_or_option_changes_it() -> None:
    answers, options = real_texts()
    assert len(answers) > 2500
    assert len(options) > 5000
    changed = list(rewritten([*answers, *options]))
    assert len(changed) > 1000
    assert [pair for pair in changed if compare(*pair).outcome is not Outcome.CORRECT] == []
