"""Audits of labels: who is drawn, and that the interval holds the truth."""

from __future__ import annotations

from itertools import chain

import numpy as np
import polars as pl
import pytest

from curation.publish.audit import AuditStratum, draw_places, estimate_audit


def planted(problems: int, seed: int, tilt: float) -> tuple[pl.DataFrame, set[str]]:
    """Labels with probabilities, and which are wrong; with ``tilt`` below 1 more are than the probabilities say."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.1, 3.0, problems)
    names = [f"p{number:04}" for number in range(problems)]
    wrong = {name for name, chance in zip(names, chances, strict=True) if rng.random() < chance**tilt}
    return pl.DataFrame({"problem": names, "wrong_label": chances}), wrong


def draw_audit(labels: pl.DataFrame, size: int, seed: int) -> tuple[AuditStratum, ...]:
    """Draw ``size`` problems, or all where there are fewer.

    Args:
        labels: problem, wrong_label: the probability that its reference is wrong.
        seed: of the draw.
    """
    ordered = labels.sort("problem")
    names, strata = ordered["problem"], draw_places(ordered["wrong_label"].to_numpy(), size, seed)
    return tuple(AuditStratum(stratum.size, tuple(names[stratum.places])) for stratum in strata)


@pytest.mark.parametrize("size", [40, 120])
def test_the_interval_covers_the_truth(size: int) -> None:
    labels, wrong = planted(1000, 1, 0.7)
    truth, covered, shares = len(wrong) / labels.height, 0, []
    for draw in range(100):
        strata = draw_audit(labels, size, draw)
        drawn = list(chain.from_iterable(stratum.drawn for stratum in strata))
        assert len(drawn) == len(set(drawn)) == size
        estimate = estimate_audit(strata, {name: name in wrong for name in drawn})
        assert estimate is not None
        covered += estimate.low <= truth <= estimate.high
        shares.append(estimate.share)
    assert covered >= 93
    assert np.mean(shares) == pytest.approx(truth, abs=3 * np.std(shares) / 10)


def test_likely_wrong_labels_are_looked_at_more_often_and_every_one_can_be() -> None:
    labels, _ = planted(400, 2, 1.0)
    strata = draw_audit(labels, 40, 0)
    rates = [len(stratum.drawn) / stratum.size for stratum in strata]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 2 * rates[-1] > 0
    assert sum(stratum.size for stratum in strata) == 400
    assert draw_audit(labels, 40, 0) == strata != draw_audit(labels, 40, 1)


def test_the_draw_is_of_the_ids_and_not_of_the_order_of_the_rows() -> None:
    labels, _ = planted(300, 4, 1.0)
    coarse = labels.with_columns(pl.col("wrong_label").round(1))  # many are alike
    some = coarse.with_columns(wrong_label=pl.when(pl.col("problem") > "p0200").then(None).otherwise("wrong_label"))
    for table in (coarse, some):
        strata = draw_audit(table, 40, 0)
        assert draw_audit(table.sample(fraction=1.0, shuffle=True, seed=7), 40, 0) == strata
    assert strata[0].drawn[-1] > "p0200"  # nothing is known of them, and they stand first


def test_all_are_drawn_where_there_are_few_and_then_nothing_is_uncertain() -> None:
    labels, wrong = planted(30, 3, 1.0)
    strata = draw_audit(labels, 500, 0)
    verdicts = {name: name in wrong for stratum in strata for name in stratum.drawn}
    estimate = estimate_audit(strata, verdicts)
    assert estimate is not None
    assert len(verdicts) == 30
    assert (estimate.low, estimate.high) == (estimate.share, estimate.share) == (len(wrong) / 30, len(wrong) / 30)


def test_there_is_no_share_before_each_stratum_has_a_verdict() -> None:
    strata = (AuditStratum(10, ("a", "b")), AuditStratum(90, ("c", "d")))
    assert estimate_audit(strata, {"a": True}) is None
    estimate = estimate_audit(strata, {"a": True, "b": False, "c": False})
    assert estimate is not None
    assert (estimate.share, estimate.judged, estimate.wrong) == (pytest.approx(0.05), 3, 1)
    assert estimate.low < 0.05 < estimate.high


def test_what_was_mended_no_longer_counts() -> None:
    strata = (AuditStratum(10, ("a", "b")), AuditStratum(90, ("c", "d")))
    told = {"a": True, "b": False, "c": False, "d": False}
    before = estimate_audit(strata, told)
    corrected, gone = estimate_audit(strata, told, corrected=["a"]), estimate_audit(strata, told, gone=["a"])
    assert before is not None
    assert corrected is not None
    assert gone is not None
    assert before.share == pytest.approx((1 + 8 / 2) / 100)
    assert corrected.share == pytest.approx(8 / 2 / 100)
    assert gone.share == pytest.approx(8 / 2 / 99)
    assert corrected.high < before.high


@pytest.mark.parametrize("mend", ["corrected", "gone"])
def test_the_interval_covers_what_is_left_after_mending(mend: str) -> None:
    labels, wrong = planted(1000, 1, 0.7)
    covered = 0
    for draw in range(100):
        strata = draw_audit(labels, 120, draw)
        told = {name: name in wrong for stratum in strata for name in stratum.drawn}
        found = {name for name, is_wrong in told.items() if is_wrong}
        truth = len(wrong - found) / (labels.height - (len(found) if mend == "gone" else 0))
        estimate = estimate_audit(strata, told, **{mend: found})
        assert estimate is not None
        covered += estimate.low <= truth <= estimate.high
    assert covered >= 93
