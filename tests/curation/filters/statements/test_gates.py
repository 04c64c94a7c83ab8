"""Gates looked for together are those of each rule alone, and expressions made quick match as they did."""

from __future__ import annotations

import re

import polars as pl
import pytest

from curation.filters.multiple_choice.words import META_OPTION, POINTS, POINTS_DOUBTFUL, POINTS_HARMLESS
from curation.filters.statements import RULES
from curation.filters.statements.expressions import STATEMENT, contains_any
from curation.filters.statements.gates import gates
from curation.languages.vocabulary import languages
from tests.benchmarks.labelled_rows import written_rows


def test_every_gate_is_what_its_rule_says_alone() -> None:
    rows = written_rows().with_columns(meta=pl.lit(None, pl.String))
    rows = pl.concat([rows, rows.with_columns(statement=pl.col("statement").str.to_uppercase())])
    rows = pl.concat([rows, rows.head(2).with_columns(statement=pl.lit(None, pl.String))])
    together = gates(rows, RULES)
    for rule in RULES:
        held = contains_any(STATEMENT, rule.needles) if rule.needles else pl.lit(True)
        alone = rows.select((held & rule.gate).fill_null(False).alias(rule.name))[rule.name]
        assert together[rule.name].equals(alone), rule.name
    assert together.columns == [rule.name for rule in RULES]


@pytest.mark.parametrize("code", sorted(POINTS))
def test_quick_expressions_match_as_those_side_by_side(code: str) -> None:
    (lang,) = (lang for lang in languages() if lang.code == code)
    choices = lang.choices
    texts = [text for text in written_rows()["statement"] if text is not None]
    texts += [
        "How many of the following are prime? Which number is in the tens place?",
        "WHICH of these could not be the least possible value? It is not listed; correct to the nearest tenth.",
        "Kann es sein, dass welche der folgenden Aussagen richtig ist? Lequel est égal à 3 ?",
    ]
    for patterns, made in (
        (choices.points, POINTS),
        (choices.points_doubtful, POINTS_DOUBTFUL),
        (choices.points_harmless, POINTS_HARMLESS),
    ):
        if not patterns:
            continue
        plain = re.compile("(?i)" + "|".join(patterns))
        for text in texts:
            assert [hit.span() for hit in made[code].finditer(text)] == [hit.span() for hit in plain.finditer(text)]


@pytest.mark.parametrize("answer", ["12", "$-3.5$", "1/2", "(3, 4)", "100%", "¦", "____", "½", "7 : 9", "√2 ≈ 1.41"])
def test_no_option_without_a_letter_speaks_of_others(answer: str) -> None:
    assert META_OPTION.search(answer) is None
