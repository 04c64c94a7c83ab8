"""The classifier of the format filter: the same n-grams everywhere, scores by the row alone, thresholds last."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from curation.config import StatementSettings
from curation.filters.statements import classify, drop_unusable, filter_statements, score_statements
from curation.filters.statements.ngrams import BUCKETS, HEAD, TAIL, hashed
from curation.filters.statements.scoring import FEATURE_RULES, GRAM_BUCKETS, HITS, NAMES, classifier
from curation.records import DropReason
from tests.curation.filters.statements.test_filtering import problems

FINE = {"statement": "Tom has 3 apples and buys 4 more. How many apples does he have now?", "answer": "7"}
POINTING = {"statement": "As shown in the figure, what is the area of the shaded region?", "answer": "12"}
DAMAGED = {
    "statement": "What was the discount, and what is the number of\\textbackslash?",
    "answer": "$25\\textbackslash\\%$ or $3",
}


def buckets(text: str) -> list[int]:
    return sorted(hashed([text], 1)[1].tolist())


def test_ngrams_are_the_same_on_every_machine() -> None:
    assert hashed(["A 22"], 1)[1].tolist() == [8995, 11710, 54, 25379, 28094]
    assert buckets("Find  x = 12\n") == buckets("find x=7")
    assert buckets("求 x 的值") != buckets("求 y 的值")
    assert buckets("") == []
    assert buckets(" \n") == []


def test_only_the_beginning_and_the_end_of_a_long_text_are_read() -> None:
    text = "word " * 200
    assert buckets(text[:HEAD] + "other words " * 50 + text[-TAIL:]) == buckets(text[:HEAD] + "\n" + text[-TAIL:])


def test_ngrams_of_a_text_depend_on_no_other() -> None:
    texts = ["What is 2+2?", "求 $x$ 的值。", "", "Найдите x", "a" * 300, "x"] * 700
    rows, of_all = hashed(texts, 2)
    for at in (0, 1, 3, 4, 5, 2001, 4199):
        assert of_all[rows == at].tolist() == hashed([texts[at]], 2)[1].tolist()
    assert of_all.max() < 2 * BUCKETS


def test_the_weights_are_for_these_features() -> None:
    weights = classifier()
    assert weights.named.shape == (len(NAMES),)
    assert weights.grams.shape == (GRAM_BUCKETS,)
    assert np.isfinite(weights.grams).all()
    assert NAMES[-len(HITS) :] == HITS


def test_a_score_depends_on_its_row_alone() -> None:
    rows = [FINE, POINTING, DAMAGED] * 5
    random.Random(3).shuffle(rows)
    together = classify(problems(*rows))["score"].to_list()
    assert together == [classify(problems(row))["score"].item() for row in rows]
    fine, pointing, damaged = (classify(problems(row))["score"].item() for row in (FINE, POINTING, DAMAGED))
    assert fine < 0.05 < pointing < 1
    assert damaged > fine


def test_thresholds_are_applied_last_and_the_parts_make_the_whole() -> None:
    frame = problems(FINE, POINTING, DAMAGED, {"statement": "Prove that 2 is prime.", "answer": None})
    scored = score_statements(frame, StatementSettings())
    assert scored.kept.height == scored.scores.height == 3
    assert scored.scores["id"].to_list() == scored.kept["id"].to_list()
    for low in (0.01, 0.5, 1.0):
        settings = StatementSettings(unusable_from=low, suspected_from=low)
        kept, dropped = drop_unusable(scored.kept, scored.scores, settings)
        whole = filter_statements(frame, settings)
        assert kept.equals(whole.kept)
        assert [*dropped["id"], "3"] == whole.dropped["id"].to_list()
        assert (scored.scores.filter(pl.col("score") >= low)["id"].to_list()) == dropped["id"].to_list()
    assert dropped.is_empty()


def test_a_drop_says_what_was_found_and_its_score() -> None:
    settings = StatementSettings(unusable_from=0.0001, suspected_from=0.0001)
    dropped = filter_statements(problems(FINE, POINTING), settings).dropped
    assert dropped["reason"].to_list() == [DropReason.UNUSABLE, DropReason.MISSING_FIGURE]
    assert dropped["evidence"].str.contains(r"^(classifier|missing_figure): .*, score 0\.\d+$").all()


@pytest.mark.parametrize("name", FEATURE_RULES)
def test_a_rule_that_is_switched_off_suspects_nothing(name: str) -> None:
    scored = score_statements(problems(POINTING), StatementSettings(disabled=(name,)))
    assert (scored.scores["rule"].to_list() == [None]) is (name == "missing_figure")
