"""What a refresh judges again: by posterior, by what training saw, and by turns."""

import polars as pl
import pytest

from curation.config import Band, RefreshSettings
from curation.difficulty import refresh
from curation.difficulty.priors import SIDES
from curation.difficulty.refresh import (
    ROLLOUT_COUNTS,
    anchor_of_parts,
    change_probability,
    trained_counts,
    uncertain_of_part,
)
from curation.records import DECISION
from tests.curation.tables import frame

BAND = Band(attempts=16)
THRESHOLD = RefreshSettings().change_probability


def decisions(*rows: tuple[str, str | None, int, int], policy: str = "old@1") -> pl.DataFrame:
    """(problem, reason, correct, judged) as `DECISION` rows."""
    names = ("problem", "reason", "correct", "judged")
    made = ({"keep": row[1] is None, **dict(zip(names, row, strict=True))} for row in rows)
    return frame(DECISION, *made, policy=policy)


@pytest.fixture(autouse=True)
def _without_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "PROBE_SHARE", 0.0)
    monkeypatch.setattr(refresh, "RETRY_SHARE", 0.0)


def trained(*rows: tuple[str, int, int, int]) -> dict[str, tuple[float, float]]:
    return trained_counts(pl.DataFrame(rows, schema=ROLLOUT_COUNTS, orient="row"))


def chosen(table: pl.DataFrame, *seen: tuple[str, int, int, int], version: int = 2) -> dict[str, str]:
    return dict(uncertain_of_part(table, trained(*seen), BAND, THRESHOLD, version, "new@1").iter_rows())


def test_the_change_probability_is_the_sum_that_the_formula_says() -> None:
    # Beta(1/2 + 0, 1/2 + 2), 3 fresh attempts: no correct one with the probability B(.5, 5.5) / B(.5, 2.5)
    band = Band(attempts=3, min_correct=1, max_pass_rate=0.99)
    none = (2.5 / 3) * (3.5 / 4) * (4.5 / 5)
    assert change_probability(0, 2, -1, band) == pytest.approx(1 - none)


def test_problems_near_an_edge_are_chosen_and_clear_ones_are_not() -> None:
    table = decisions(
        ("one of 16", None, 1, 16),
        ("half", None, 8, 16),
        ("twelve of 16", None, 12, 16),
        ("thirteen of 16", "too_easy", 13, 16),
        ("all", "too_easy", 16, 16),
        ("none", "never_solved", 0, 16),
    )
    assert chosen(table) == {"one of 16": "edge", "twelve of 16": "edge", "thirteen of 16": "edge"}


def test_what_training_saw_counts_more_than_the_old_rate() -> None:
    table = decisions(("rose", None, 8, 16), ("stayed", None, 1, 16), ("little seen", None, 8, 16))
    seen = (("rose", 90, 16, 16), ("stayed", 90, 8, 16), ("little seen", 90, 4, 4))
    assert chosen(table, *seen) == {"rose": "moved"}
    older_counts_less = trained(("a", 0, 0, 16), ("a", 100, 16, 16), ("b", 100, 1, 2))
    assert older_counts_less == {"a": (16.0, 24.0), "b": (1.0, 2.0)}


def test_what_was_never_settled_is_chosen_and_what_this_policy_judged_is_not() -> None:
    table = decisions(("open", "too_few_attempts", 1, 2), ("failed", "verifier_failed", 0, 10))
    assert chosen(table) == {"open": "unsettled", "failed": "unsettled"}
    assert chosen(decisions(("edge", None, 1, 16), policy="new@1")) == {}


def test_each_refresh_takes_another_share_until_all_had_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "PROBE_SHARE", 0.25)
    monkeypatch.setattr(refresh, "RETRY_SHARE", 0.25)
    names = [f"problem {number}" for number in range(2000)]
    table = decisions(
        *((name, "too_easy", 16, 16) for name in names[::2]), *((n, "never_solved", 0, 16) for n in names[1::2])
    )
    seen: list[str] = []
    for version in range(2, 6):
        part = chosen(table, version=version)
        assert 400 < len(part) < 600
        assert set(part.values()) == {"probe", "retry"}
        seen += part
    assert sorted(seen) == sorted(names)


def many(size: int) -> pl.DataFrame:
    """Problems of every kind: a fifth never solved, a fifth too easy."""
    rows = []
    for number in range(size):
        kind = number % 5
        reason = {0: "never_solved", 4: "too_easy"}.get(kind)
        rows.append((f"p{number:04}", reason, {0: 0, 4: 15}.get(kind, 2 + number % 10), 16))
    return decisions(*rows)


def test_the_anchor_is_spread_evenly_over_old_pass_rates_and_moves_on() -> None:
    table = many(2000)
    anchor = anchor_of_parts([table], 2, "new@1")
    assert anchor.columns == ["problem", "why"]
    assert set(anchor["why"]) == {"anchor"}
    assert anchor["problem"].n_unique() == anchor.height == 100
    reasons = table.join(anchor, on="problem", how="semi")["reason"].value_counts()
    assert sorted(reasons.iter_rows(), key=str) == [("never_solved", 20), ("too_easy", 20), (None, 60)]
    assert anchor_of_parts([table.reverse()], 2, "new@1").equals(anchor)
    assert not anchor_of_parts([table], 3, "new@1").equals(anchor)
    assert anchor_of_parts([table], 2, "old@1").height == 0  # it has judged all of them already
    assert [anchor_of_parts([many(size)], 2, "new@1").height for size in (100, 99)] == [50, 0]


def test_what_the_policys_strength_says_goes_before_old_pass_rates() -> None:
    table = decisions(
        ("hard", "never_solved", 0, 16),
        ("hopeless", "never_solved", 0, 16),
        ("label", "suspected_wrong_label", 0, 16),
        ("easy", "too_easy", 16, 16),
        ("edge", None, 12, 16),
        ("open", "verifier_failed", 3, 9),
        ("trained", None, 8, 16),
        ("unknown", None, 12, 16),
    )
    expected = [
        ("hard", 0.7, 0.3, 0.0),
        ("hopeless", 0.95, 0.05, 0.0),
        ("label", 0.5, 0.4, 0.1),
        ("easy", 0.0, 0.05, 0.95),
        ("edge", 0.0, 0.05, 0.95),
        ("open", 0.0, 1.0, 0.0),
        ("trained", 0.0, 0.2, 0.8),
    ]
    sides = pl.DataFrame(expected, schema=SIDES, orient="row")
    seen = trained(("trained", 5, 8, 16))
    made = dict(uncertain_of_part(table, seen, BAND, THRESHOLD, 2, "new@1", sides).iter_rows())
    shifted = dict.fromkeys(("hard", "label", "edge", "trained"), "shifted")  # rollouts have their part in the model
    assert made == shifted | {"open": "unsettled", "unknown": "edge"}
