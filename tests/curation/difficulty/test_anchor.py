"""The anchor of a refresh: it finds how much stronger a policy is, and whom a stronger policy must judge."""

from __future__ import annotations

import polars as pl
import pytest

from curation.config import Band, RefreshSettings
from curation.difficulty.anchor import anchor_lines, anchored, observed_changes
from curation.difficulty.refresh import ROLLOUT_COUNTS, select_anchor, select_uncertain
from curation.records import DECISION
from tests.curation.difficulty.simulated import counts_of, simulated
from tests.curation.difficulty.test_refresh import decisions

BAND, PROBLEMS = Band(attempts=16), 1500


def reason_of(correct: int) -> str | None:
    if correct < BAND.min_correct:
        return "never_solved"
    return "too_easy" if correct > 12 else None


def tiers(shift: float, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Decisions of the old policy, and counts of the new one at all problems: 16 attempts each."""
    table = simulated(PROBLEMS, {"old@1": 0.0, "new@1": shift}, BAND.attempts, 20.0, seed)
    old = table.filter(pl.col("policy") == "old@1")
    rows = [(name, reason_of(correct), correct, judged) for name, _, correct, judged in old.iter_rows()]
    return decisions(*rows), table.filter(pl.col("policy") == "new@1")


@pytest.mark.parametrize("shift", [0.3, 1.0, 2.0, -1.0])
def test_a_refresh_decides_nearly_as_if_all_were_judged_and_misses_few_that_came_into_the_band(shift: float) -> None:
    old, new = tiers(shift, seed=8)
    settings = RefreshSettings()
    anchor = select_anchor(old, settings, 2, "new@1")
    counts = old.select("problem", "policy", "correct", "judged").cast(dict(new.schema))
    told = anchored(counts.vstack(new.join(anchor, on="problem", how="semi")), "new@1", "old@1")
    assert told is not None
    assert told.calibration.holds
    assert told.shift == pytest.approx(shift, abs=0.5)
    assert anchor_lines(told)[0].startswith(
        f"anchor: {anchor.height} problems judged by new@1: {told.shift:+.2f} logits"
    )

    def outcome(sides: pl.DataFrame | None) -> tuple[float, float]:
        """The share of decisions that differ from a full judgement, and of problems in the band that are missed."""
        chosen = select_uncertain(old, ROLLOUT_COUNTS.to_frame(), BAND, settings, 2, "new@1", sides)["problem"]
        asked = set(chosen) | set(anchor["problem"])
        full = {name: reason_of(correct) for name, _, correct, _ in new.iter_rows()}
        kept = dict(old.select("problem", "reason").iter_rows())
        made = {name: full[name] if name in asked else kept[name] for name in full}
        inside = [name for name, reason in full.items() if reason is None]
        missed = [name for name in inside if made[name] is not None]
        return sum(made[name] != full[name] for name in full) / len(full), len(missed) / len(inside)

    with_anchor, without = outcome(told.sides(BAND, old["problem"])), outcome(None)
    assert with_anchor[0] <= 0.03
    assert with_anchor[1] <= 0.04
    assert without[0] > 0.05  # what an anchor is for


def test_a_policy_with_other_strengths_is_said_and_nothing_follows_from_its_anchor() -> None:
    old, new = tiers(0.0, seed=9)
    counts = old.select("problem", "policy", "correct", "judged").cast(dict(new.schema))
    strange = new.with_columns(correct=BAND.attempts - pl.col("correct"))
    told = anchored(counts.vstack(strange.head(200)), "new@1", "old@1")
    assert told is not None
    assert not told.calibration.holds
    assert "does not tell what new@1 solves" in anchor_lines(told)[1]
    assert "so the anchor itself tells which old decisions stand" in anchor_lines(told)[1]


def test_an_anchor_on_which_the_verifier_failed_tells_nothing() -> None:
    assert anchored(counts_of([("p", "old@1", 3, 16), ("p", "new@1", 0, 0)]), "new@1", "old@1") is None
    assert anchor_lines(None) == []


def test_against_a_policy_that_made_no_attempt_the_strength_is_unknown() -> None:
    told = anchored(counts_of([("p", "weak@1", 3, 16), ("p", "new@1", 8, 16)]), "new@1", "recorded")
    assert told is not None
    assert told.shift is None
    assert "of unknown strength" in anchor_lines(told)[0]


def test_where_the_model_is_refused_the_anchors_own_decisions_say_what_is_judged_again() -> None:
    """All that was too easy stands; what was never solved comes into the band at every second problem."""
    old = {"never_solved": (0, 100), "too_easy": (16, 60), None: (6, 40)}
    rows, judged = [], {}
    for reason, (correct, number) in old.items():
        for place in range(number):
            name = f"{reason} {place:03}"
            rows.append({"problem": name, "keep": reason is None, "reason": reason, "correct": correct, "judged": 16})
            if place < number // 2:
                judged[name] = None if reason == "never_solved" and place % 2 else reason
    decisions = pl.DataFrame([{**dict.fromkeys(DECISION), **row} for row in rows], schema=DECISION)
    found = observed_changes(decisions, judged, 0.03)
    chances = {name: rest for name, *rest in found.sides.iter_rows()}
    below, inside, above = chances["never_solved 099"]
    assert (below, inside) == (pytest.approx(0.5, abs=0.03), pytest.approx(0.5, abs=0.03))
    assert above < 0.02
    assert chances["too_easy 059"][2] > 0.95
    assert chances["None 039"][1] > 0.93
    assert max(1 - chances["too_easy 059"][2], 1 - chances["None 039"][1]) < found.threshold <= 1 - below
    assert 0 < found.lost <= 0.03
    assert "judged again that change" in found.sentence
    assert observed_changes(decisions, judged, 1.0).threshold == 1.0
