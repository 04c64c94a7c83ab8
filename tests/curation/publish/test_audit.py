"""Audits of labels: who is drawn, and that the interval holds the truth."""

import numpy as np
import polars as pl
import pytest

from curation.publish.audit import AuditStratum, draw_places, estimate_audit


def planted(problems: int, seed: int, tilt: float) -> tuple[pl.DataFrame, set[str]]:
    """Labels with probabilities, and which are wrong; with ``tilt`` below 1 more are than the probabilities state."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.1, 3.0, problems)
    names = [f"p{number:04}" for number in range(problems)]
    wrong = {name for name, chance in zip(names, chances, strict=True) if rng.random() < chance**tilt}
    return pl.DataFrame({"problem": names, "wrong_label": chances}), wrong


def draw_audit(labels: pl.DataFrame, size: int, seed: int) -> tuple[AuditStratum, ...]:
    ordered = labels.sort("problem")
    names, strata = ordered["problem"], draw_places(ordered["wrong_label"].to_numpy(), size, seed)
    return tuple(AuditStratum(count, tuple(names[places])) for count, places in strata)


def test_there_is_no_share_before_each_stratum_has_a_verdict() -> None:
    strata = (AuditStratum(10, ("a", "b")), AuditStratum(90, ("c", "d")))
    assert estimate_audit(strata, {"a": True}) is None
    estimate = estimate_audit(strata, {"a": True, "b": False, "c": False})
    assert estimate is not None
    assert (estimate.share, estimate.judged, estimate.wrong) == (pytest.approx(0.05), 3, 1)
    assert estimate.low < 0.05 < estimate.high


@pytest.mark.slow
@pytest.mark.parametrize("mend", ["", "corrected", "gone"])
def test_the_interval_covers_the_truth_and_what_is_left_after_mending(mend: str) -> None:
    labels, wrong = planted(1000, 1, 0.7)
    covered = 0
    for draw in range(60):
        strata = draw_audit(labels, 120, draw)
        told = {name: name in wrong for stratum in strata for name in stratum.drawn}
        found = {name for name, is_wrong in told.items() if is_wrong and mend}
        truth = len(wrong - found) / (labels.height - (len(found) if mend == "gone" else 0))
        estimate = estimate_audit(strata, told, **({mend: found} if mend else {}))
        assert estimate is not None
        covered += estimate.low <= truth <= estimate.high
    assert covered >= 55
