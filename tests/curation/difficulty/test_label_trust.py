"""The probability that a reference is wrong: hand-computed values, planted labels, and what it must not do."""

from __future__ import annotations

from math import log

import polars as pl
import pytest

from curation.difficulty import label_trust
from curation.difficulty.item_response import fit
from curation.difficulty.label_trust import LABEL_TRUST, LabelModel, fit_labels, label_posteriors, suspect_labels
from curation.difficulty.label_votes import VOTES, label_votes, source_votes, vote_patterns
from curation.records import DECISION, VERDICT, GoldilocksError
from tests.benchmarks.labelled_attempts import plant, simulated, votes_of

STRONG = {"a": 2.0, "b": 2.5, "c": 3.0, "d": 3.5}


def votes(*rows: tuple[str, str, int | None, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=VOTES, orient="row")


def verdicts(policy: str, *rows: tuple[str, str | None, int | None, str]) -> pl.DataFrame:
    """Verdicts as problem, answer, class and method; a method `broken` is a verdict that failed."""
    made = [
        {
            "problem": problem,
            "policy": policy,
            "index": index,
            "answer": answer,
            "answer_class": number,
            "method": method,
            "outcome": "broken" if method == "broken" else "correct" if number == 0 else "wrong",
        }
        for index, (problem, answer, number, method) in enumerate(rows)
    ]
    return pl.DataFrame([{**dict.fromkeys(VERDICT), **row} for row in made], schema=VERDICT)


def test_who_agrees_on_wrong_answers_as_counted_by_hand() -> None:
    cast = votes(("p", "one", 1, 2), ("p", "one", 2, 1), ("p", "two", 1, 1), ("p", "two", 0, 1))
    seen = vote_patterns(cast, pl.Series(["p"]))
    found = label_trust._likelihoods(seen, fit(label_trust._counts(cast, None)))
    traps = label_trust._TRAPS.tolist()
    at, (theta, gamma) = next((at, pair) for at, pair in enumerate(traps) if pair == [0.4, 6.0])
    agreed = {int(place): log(found.agreed[row, at]) + found.top[row] for row, place in enumerate(found.place)}
    first = 1 / (1 + theta) * theta / (2 + theta)  # one: the second the same as the first, the third another
    shared = gamma / (1 + gamma) * 1 / (2 + gamma)  # one's two answers are two; two's is the first of them
    assert agreed[0] == pytest.approx(log(first * shared))
    # the answer that one gave twice and two once is right: two's wrong answer is the label's, one's is another
    right = next(place for place in (1, 2) if seen.classes.filter(place=place)["answer_class"][0] == 1)
    assert agreed[right] == pytest.approx(log(1 / (1 + gamma) * gamma / (2 + gamma)))


def test_accepted_references_are_right_and_untried_problems_have_the_prior() -> None:
    answers = simulated(200, STRONG, 8, 2)
    planted = plant(answers, 0.1, 0)
    cast = votes_of(answers, planted)
    worst = sorted(planted.wrong)[0]
    model = fit_labels(cast, (worst,))
    labels = label_posteriors(model, cast, pl.Series([worst, "nobody"]), (worst,))
    assert labels["wrong_label"].to_list() == [0.0, pytest.approx(model.share)]
    assert labels["rival_class"][1] is None
    with pytest.raises(GoldilocksError, match="none was judged"):
        fit_labels(VOTES.to_frame())


def test_another_source_that_disagrees_speaks_against_a_label_and_one_that_agrees_for_it() -> None:
    answers = simulated(200, STRONG, 2, 3)
    cast = votes_of(answers, plant(answers, 0.05, 0))
    model, name = fit_labels(cast), "p00007"

    def chance(extra: pl.DataFrame, model: LabelModel = model) -> float:
        both = pl.concat([cast, extra])
        return float(label_posteriors(model, both, pl.Series([name]))["wrong_label"][0])

    agrees, differs = votes((name, "source:other", 0, 1)), votes((name, "source:other", 77, 1))
    assert chance(agrees) < chance(VOTES.to_frame()) < chance(differs)


def test_classes_of_two_stages_are_one_where_they_share_an_answer() -> None:
    first = verdicts("weak", ("p", "5", 0, ""), ("p", "7", 1, ""), ("p", "7.0", 1, ""), ("p", None, None, ""))
    second = verdicts("strong", ("p", "9", 1, ""), ("p", "7.0", 2, ""), ("p", "3", 3, "symbolic (doubtful)"))
    failed = verdicts("strong", ("p", "9", None, "broken"))
    told, answers = label_votes([first, pl.concat([second, failed])])
    assert told.rows() == [
        ("p", "weak", None, 1),
        ("p", "weak", 0, 1),
        ("p", "strong", 1, 1),
        ("p", "weak", 1, 2),
        ("p", "strong", 2, 1),
    ]
    assert answers.rows() == [("p", 0, "5", "weak 1"), ("p", 1, "7", "strong 1, weak 2"), ("p", 2, "9", "strong 1")]
    copies = pl.DataFrame({"problem": ["p", "p"], "source": ["x", "y"], "answer": ["9", "11"]})
    assert source_votes(copies, answers).rows() == [("p", "source:x", 2, 1), ("p", "source:y", 4, 1)]


def test_suspected_labels_are_dropped_and_undecided_problems_stay_so() -> None:
    rows = [("a", True, None), ("b", False, "never_solved"), ("c", False, "verifier_failed"), ("d", True, None)]
    decisions = pl.DataFrame(
        [{**dict.fromkeys(DECISION), "problem": n, "keep": k, "reason": r} for n, k, r in rows], schema=DECISION
    )
    labels = pl.DataFrame(
        [
            (name, chance, 1, chance, "7", f"says {chance}")
            for name, chance in zip("abcd", (0.9, 0.9, 0.9, 0.4), strict=True)
        ],
        schema=LABEL_TRUST,
        orient="row",
    )
    made = suspect_labels(decisions, labels, 0.5)
    suspected = "suspected_wrong_label"
    assert made["reason"].to_list() == [suspected, suspected, "verifier_failed", None]
    assert made["keep"].to_list() == [False, False, False, True]
    assert made["evidence"].to_list() == ["says 0.9", "says 0.9", None, None]
