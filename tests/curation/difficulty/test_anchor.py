"""The anchor of a refresh: how much stronger a policy is, and how expected pass rates are corrected by it."""

from math import lgamma

import numpy as np
import polars as pl
import pytest

from curation.config import Band
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.refresh import anchor_of_parts
from curation.difficulty.refresh_forecast import (
    Anchor,
    ForecastPart,
    Recalibration,
    RefreshForecast,
    anchor_lines,
    anchored,
    foresee_refresh,
    recalibrate,
)
from curation.records import Outcome
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


def foreseen(told: Anchor, old: pl.DataFrame, judged: pl.DataFrame, cut: int | None = None) -> RefreshForecast:
    """What follows from an anchor whose attempts come in any order: here the correct ones first."""
    attempts: dict[str, list[AttemptOutcome]] = {
        name: [(Outcome.CORRECT, 0)] * correct + [(Outcome.WRONG, 1 + place) for place in range(made - correct)]
        for name, _, correct, made in judged.iter_rows()
    }
    agree = pl.min_horizontal(1, pl.col("judged") - pl.col("correct")).cast(old.schema["top_wrong_votes"])
    decided = old.with_columns(top_wrong_votes=agree)
    cut = decided.height // 2 if cut is None else cut
    halves = [decided[:cut], decided[cut:]]
    parts = [ForecastPart(half, told.counts.join(half, on="problem", how="semi")) for half in halves]
    return foresee_refresh(told, parts, attempts, StoppingRule(BAND), 0.025)


def sides_of(forecast: RefreshForecast, old: pl.DataFrame) -> pl.DataFrame:
    """The chances of the sides of all problems, which came in two halves."""
    sides = pl.concat([forecast.sides_of(0), forecast.sides_of(1)])
    assert sides["problem"].to_list() == old["problem"].to_list()
    return sides


def test_a_forecast_and_an_anchor_in_parts_are_those_of_the_whole() -> None:
    old, new = tiers(1.0, seed=3)
    anchor = anchor_of_parts([old], 2, "new@1")
    halves = [old[:111], old[:0], old[111:]]
    assert anchor_of_parts(halves, 2, "new@1").equals(anchor)
    judged = new.join(anchor, on="problem", how="semi")
    counts = old.select("problem", "policy", "correct", "judged").cast(dict(new.schema))
    told = anchored(counts.vstack(judged), "new@1", "old@1")
    assert told is not None
    names = old["problem"]
    one, other = (foreseen(told, old, judged, at) for at in (0, len(names) // 2))
    assert one.threshold == other.threshold
    assert (one.lost, one.share) == pytest.approx((other.lost, other.share))
    assert pl.concat([other.priors_of(0), other.priors_of(1)]).equals(one.priors_of(1))


def test_a_policy_with_other_strengths_is_said_and_nothing_follows_from_its_anchor() -> None:
    old, new = tiers(0.0, seed=9)
    counts = old.select("problem", "policy", "correct", "judged").cast(dict(new.schema))
    strange = new.with_columns(correct=BAND.attempts - pl.col("correct"))
    told = anchored(counts.vstack(strange.head(200)), "new@1", "old@1")
    assert told is not None
    assert not told.calibration.holds
    assert "does not predict what new@1 solves" in anchor_lines(told)[1]
    assert "so little is concluded from others" in anchor_lines(told)[1]
    forecast = foreseen(told, old, strange.head(200))
    assert forecast.correction.slope < 0.6
    assert "prior precision ×" in forecast.correction.sentence
    left = sides_of(forecast, old).join(strange.tail(PROBLEMS - 200), on="problem")
    full = [reason_of(correct) for correct in left["correct"]]
    inside = left["inside"].to_numpy()
    assert inside.mean() == pytest.approx(sum(reason is None for reason in full) / len(full), abs=0.1)


def test_without_verdicts_there_is_no_anchor_and_against_a_policy_without_attempts_the_strength_is_unknown() -> None:
    assert anchored(counts_of([("p", "old@1", 3, 16), ("p", "new@1", 0, 0)]), "new@1", "old@1") is None
    assert anchor_lines(None) == []
    told = anchored(counts_of([("p", "weak@1", 3, 16), ("p", "new@1", 8, 16)]), "new@1", "recorded")
    assert told is not None
    assert told.shift is None
    assert "of unknown strength" in anchor_lines(told)[0]


def priors(mean: np.ndarray, size: float) -> pl.DataFrame:
    rows = {"problem": [f"p{number:05}" for number in range(len(mean))], "correct": mean * size}
    rest = {"agree": 0.5, "differ": 2.0, "error_rate": 0.05, "informed_by": "old 16"}
    return pl.DataFrame({**rows, "other": (1 - mean) * size}).with_columns(**{k: pl.lit(v) for k, v in rest.items()})


def test_the_correction_is_the_likeliest_one_of_all_near_it() -> None:
    """By the beta-binomial formula itself, with the prior of "nothing to correct"."""
    table = priors(np.array([0.1, 0.3, 0.5, 0.8]), 6.0)
    counts = pl.DataFrame({"problem": table["problem"], "policy": "x", "correct": [2, 1, 7, 8], "judged": [8, 5, 8, 8]})

    def value(shift: float, slope: float, size: float) -> float:
        total = -0.5 * ((shift / 0.5) ** 2 + (np.log(slope) / 0.3) ** 2 + (np.log(size) / 0.7) ** 2)
        for a, b, c, n in zip(table["correct"], table["other"], counts["correct"], counts["judged"], strict=True):
            mean, firm = 1 / (1 + (b / a) ** slope * np.exp(-shift)), size * (a + b)
            own = (mean * firm + c, (1 - mean) * firm + n - c)
            total += lgamma(own[0]) + lgamma(own[1]) - lgamma(sum(own))
            total -= lgamma(mean * firm) + lgamma((1 - mean) * firm) - lgamma(firm)
        return float(total)

    best = recalibrate(table, counts)
    here = value(best.shift, best.slope, best.size)
    near = (best.shift + 0.02, best.slope, best.size), (best.shift - 0.02, best.slope, best.size)
    near += (best.shift, best.slope * 1.02, best.size), (best.shift, best.slope / 1.02, best.size)
    near += (best.shift, best.slope, best.size * 1.04), (best.shift, best.slope, best.size / 1.04)
    assert all(value(*point) < here for point in near)


def test_priors_move_as_the_sentence_says() -> None:
    table = Recalibration(1.0, 0.5, 0.25).applied(priors(np.array([0.5, 0.9]), 8.0))
    sizes = (table["correct"] + table["other"]).to_numpy()
    assert sizes == pytest.approx([2.0, 2.0], rel=0.2)  # rounded to steps of a third
    means = (table["correct"].to_numpy() / sizes).tolist()
    assert means == pytest.approx([1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(-1.0) / 3)], abs=0.03)
    assert table["agree"].to_list() == [0.5, 0.5]
    sentence = Recalibration(1.0, 0.5, 0.25).sentence
    assert "+1.00 logits" in sentence
    assert "prior precision ×0.25" in sentence
