"""The probability that a reference is wrong, by hand and by planted references; who decides: it or votes."""

from math import log
from pathlib import Path

import polars as pl
import pytest

from curation.difficulty import label_trust
from curation.difficulty.item_response import fit
from curation.difficulty.label_trust import (
    LABEL_TRUST,
    LabelModel,
    PlantedCheck,
    RuleFound,
    accused_by_votes,
    cast_again,
    check_by_planting,
    decided_by_votes,
    drawn_problems,
    fit_labels,
    label_posteriors,
    plant_references,
    suspect_labels,
)
from curation.difficulty.label_votes import ANSWERS, VOTES, VoteParts, label_votes, source_votes, vote_patterns
from curation.records import DECISION, VERDICT, GoldilocksError
from tests.benchmarks.labelled_attempts import plant, simulated, votes_of
from tests.curation.tables import frame

STRONG = {"a": 2.0, "b": 2.5, "c": 3.0, "d": 3.5}


def cast_votes(*rows: tuple[str, str, int | None, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=VOTES, orient="row")


def verdicts(policy: str, *rows: tuple[str, str | None, int | None, str]) -> pl.DataFrame:
    """Verdicts as problem, answer, class and method; a method `broken` is a verdict that failed."""
    made = (
        {"problem": problem, "index": index, "answer": answer, "answer_class": number, "method": method}
        | {"outcome": "broken" if method == "broken" else "correct" if number == 0 else "wrong"}
        for index, (problem, answer, number, method) in enumerate(rows)
    )
    return frame(VERDICT, *made, policy=policy)


def test_who_agrees_on_wrong_answers_as_counted_by_hand() -> None:
    cast = cast_votes(("p", "one", 1, 2), ("p", "one", 2, 1), ("p", "two", 1, 1), ("p", "two", 0, 1))
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

    agrees, differs = cast_votes((name, "source:other", 0, 1)), cast_votes((name, "source:other", 77, 1))
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
    reasons = {"a": None, "b": "never_solved", "c": "verifier_failed", "d": None}
    rows = ({"problem": name, "keep": reason is None, "reason": reason} for name, reason in reasons.items())
    decisions = frame(DECISION, *rows)
    chances = {"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.4}
    trust = [(name, chance, 1, chance, "7", f"says {chance}") for name, chance in chances.items()]
    labels = pl.DataFrame(trust, schema=LABEL_TRUST, orient="row")
    made = suspect_labels(decisions, labels, 0.5)
    suspected = "suspected_wrong_label"
    assert made["reason"].to_list() == [suspected, suspected, "verifier_failed", None]
    assert made["keep"].to_list() == [False, False, False, True]
    assert made["evidence"].to_list() == ["says 0.9", "says 0.9", None, None]


def test_a_planted_reference_is_another_answer_and_the_old_one_is_one_of_the_others(tmp_path: Path) -> None:
    votes = cast_votes(
        *((f"p{n:03}", "m", kind, 3 - kind) for n in range(100) for kind in (0, 1)), ("p000", "m", None, 1)
    )
    whole = VoteParts([(votes, ANSWERS.to_frame())], tmp_path)
    labels = plant_references(whole, whole.ids, seed=4)
    planted, wrong = cast_again(votes, labels, whole.top), set(labels["problem"])
    assert len(wrong) == 20
    untouched = ~pl.col("problem").is_in(list(wrong))
    assert planted.filter(untouched).equals(votes.filter(untouched))
    parts = planted.group_by("problem")
    by_problem = {name: dict(part.select("votes", "answer_class").iter_rows()) for (name,), part in parts}
    swapped = [name for name in wrong if by_problem[name][2] == 0]
    assert all(by_problem[name][3] == 2 for name in wrong)  # what was the reference's answer
    assert 1 <= len(swapped) <= 12
    assert all(by_problem[name][2] == 1 for name in wrong - set(swapped))


def test_a_majority_of_the_voters_accuses() -> None:
    votes = cast_votes(
        ("most", "m", 1, 3), ("most", "m", 0, 2), ("half", "m", 1, 3), ("half", "m", 0, 3), ("few", "m", 1, 2),
        ("split", "m", 1, 3), ("split", "m", 2, 3), ("other", "n", 1, 9),
    )  # fmt: skip
    assert accused_by_votes(votes, ["m"]) == {"most"}
    assert accused_by_votes(votes, ["m", "n"]) == {"most", "other"}


def test_the_better_rule_decides_and_exactly_its_labels_reach_the_threshold() -> None:
    assert PlantedCheck(20, RuleFound(18, 4), RuleFound(17, 4), 400, 0.0).posterior_holds
    worse = PlantedCheck(20, RuleFound(18, 4), RuleFound(19, 2), 400, 0.0)
    assert not worse.posterior_holds
    assert "finds 18 and accuses 4 others, votes find 19 and accuse 2; so votes decide" in worse.sentence
    labels = pl.DataFrame({"problem": ["a", "b", "c"], "wrong_label": [0.1, 0.9, 0.2]})
    decided = decided_by_votes(labels, {"a"}, 0.5)["wrong_label"].to_list()
    assert decided[0] == 0.5
    assert 0.49 < decided[1] < 0.5
    assert decided[2] == 0.2


def test_a_rule_that_accuses_too_many_sound_labels_is_not_trusted() -> None:
    """One policy's majority finds most planted ones and accuses as many sound ones: the posterior accuses nobody."""
    check = PlantedCheck(40, RuleFound(0, 2), RuleFound(30, 24), 800, 0.0)
    assert check.is_trusted(check.by_posterior)
    assert not check.is_trusted(check.by_votes)
    assert check.posterior_holds
    # three in a hundred were wrong before, and votes find three of four: 18 of the 24 are these
    assert not PlantedCheck(40, RuleFound(0, 2), RuleFound(30, 24), 800, 0.03).posterior_holds
    assert not PlantedCheck(40, RuleFound(30, 60), RuleFound(20, 8), 800, 0.0).posterior_holds


ANSWERED = simulated(300, {"a": 2.0, "b": 2.5, "c": 3.0}, 4, 5)
CAST = votes_of(ANSWERED, plant(ANSWERED, 0.05, 1))


def in_parts(folder: Path, count: int) -> VoteParts:
    ids = CAST["problem"].unique().sort()
    folder.mkdir()
    parts = (CAST.filter(pl.col("problem").is_in(ids.gather_every(count, first).implode())) for first in range(count))
    answers = CAST.filter(pl.col("answer_class").is_not_null()).group_by("problem", "answer_class").agg(
        answer=pl.lit("1").first(), policies=pl.col("policy").sort().str.join(", ")
    )  # fmt: skip
    return VoteParts(
        ((part, answers.join(part, on="problem", how="semi").match_to_schema(ANSWERS)) for part in parts), folder
    )


def test_votes_in_files_are_those_in_memory(tmp_path: Path) -> None:
    votes, ids = in_parts(tmp_path / "parts", 7), CAST["problem"].unique().sort()
    assert votes.ids.equals(ids)
    assert votes.top == CAST["answer_class"].max()
    by = ["problem", "policy", "answer_class"]
    assert pl.concat(votes.parts()).sort(by).equals(CAST.sort(by))
    some = ids.gather([250, 3, 4])
    assert votes.of(some).sort(by).equals(CAST.filter(pl.col("problem").is_in(some.implode())).sort(by))
    assert votes.answers_of(some)["problem"].unique().sort().equals(some.sort())
    assert votes.of(pl.Series(["nobody"])).is_empty()


@pytest.mark.slow
def test_labels_are_the_same_to_the_bit_and_so_is_what_planting_finds(tmp_path: Path) -> None:
    votes, whole = in_parts(tmp_path / "parts", 7), in_parts(tmp_path / "whole", 1)
    model, ids = fit_labels(votes.of(drawn_problems(votes.ids, 0))), votes.ids
    expected = label_posteriors(fit_labels(CAST), CAST, ids)
    pieces = [label_posteriors(model, votes.of(part), part) for part in (ids[:111], ids[111:])]
    assert pl.concat(pieces).equals(expected)
    found, told = (check_by_planting(either, ["c"], 0.5) for either in (votes, whole))
    assert found is not None
    assert told is not None
    assert (found.planted, found.by_posterior, found.by_votes) == (told.planted, told.by_posterior, told.by_votes)
    assert found.share == pytest.approx(told.share, abs=1e-12)
