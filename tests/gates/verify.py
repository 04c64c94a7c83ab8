"""The verifier of answers: right on labelled pairs, near misses, rewritings, and speed against Math-Verify."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from tests.gates import prose_answers
from tests.gates.answer_pairs import (
    DRAWN,
    TRUSTED,
    Pair,
    Verifier,
    drawn_pairs,
    is_right,
    labelled_pairs,
    ours,
    trusted_pairs,
)
from tests.gates.base import Limit, Measured, gate, middle, wilson

CHUNK = 20
"""Pairs that one verifier judges before the other judges them."""

SAMPLED = 320
"""Pairs of the quick comparison of speed."""

Verdicts = tuple[tuple[Pair, bool], ...]


@cache
def _trusted() -> Verdicts:
    return tuple((pair, ours(pair.reference, pair.answer)) for pair in trusted_pairs())


@cache
def _drawn() -> tuple[Verdicts, Verdicts]:
    near, equal = (tuple((pair, ours(pair.reference, pair.answer)) for pair in pairs) for pairs in drawn_pairs())
    return near, equal


def _mistakes(verdicts: Verdicts) -> list[Pair]:
    return [pair for pair, verdict in verdicts if not is_right(pair, verdict)]


def _listed(pairs: Sequence[Pair]) -> str:
    return "; ".join(f"{pair.reference[-40:]!r} ~ {pair.answer[-40:]!r}" for pair in pairs[:3])


@gate("trusted-pairs", Limit(">=", 95.05, "%"))
def trusted() -> Measured:
    """Return the share of trusted pairs that are judged as labelled."""
    verdicts = _trusted()
    right = len(verdicts) - len(_mistakes(verdicts))
    note = f"{right:,} of {len(verdicts):,} pairs"
    return Measured(100 * right / len(verdicts), interval=wilson(right, len(verdicts), scale=100), note=note)


@gate("false-positives", Limit("<=", 3))
def false_positives() -> Measured:
    """Return how many of the trusted pairs that differ are accepted."""
    different = tuple((pair, verdict) for pair, verdict in _trusted() if not pair.equal)
    accepted = _mistakes(different)
    interval = wilson(len(accepted), len(different), scale=len(different))
    return Measured(len(accepted), len(different), interval, _listed(accepted))


@gate("near-misses-accepted", Limit("<=", 0))
def near_misses() -> Measured:
    """Return how many references with one token changed are accepted."""
    accepted = _mistakes(_drawn()[0])
    return Measured(len(accepted), DRAWN, wilson(len(accepted), DRAWN, scale=DRAWN), _listed(accepted))


@gate("rewritings-refused", Limit("<=", 0))
def rewritings() -> Measured:
    """Return how many references written in another way are refused."""
    refused = _mistakes(_drawn()[1])
    return Measured(len(refused), DRAWN, wilson(len(refused), DRAWN, scale=DRAWN), _listed(refused))


@gate("prose-not-accepted", Limit("<=", 3, "%"))
def prose_not_accepted() -> Measured:
    """Return the share of right answers in prose that are not judged correct; a wrong or doubtful verdict counts."""
    judged = [(one, prose_answers.accepted(one, one.text)) for one in prose_answers.all_answers()]
    refused = Counter(one.kind for one, is_accepted in judged if not is_accepted)
    counts = Counter(one.kind for one, _ in judged)
    note = "; ".join(f"{kind}: {refused[kind]} of {count:,}" for kind, count in counts.items())
    return Measured(100 * refused.total() / len(judged), None, wilson(refused.total(), len(judged), scale=100), note)


@gate("prose-changed-accepted", Limit("<=", 0))
def prose_changed() -> Measured:
    """Return how many of these answers are accepted after their number was changed."""
    judged = [one for one in prose_answers.all_answers() if prose_answers.accepted(one, one.changed)]
    count = len(prose_answers.all_answers())
    return Measured(
        len(judged), count, wilson(len(judged), count, scale=count), "; ".join(one.id for one in judged[:5])
    )


def _speed(pairs: Sequence[Pair]) -> tuple[Measured, Verdicts]:
    """Return how many times our pairs per CPU second are Math-Verify's, and its verdicts.

    The two take turns on chunks of the pairs. The figure is the median over the chunks.
    """
    ratios, theirs, totals = [], list[bool](), [0.0, 0.0]
    with Verifier("ours") as own, Verifier("Math-Verify") as peer:
        for start in range(0, len(pairs), CHUNK):
            (_, seconds), (verdicts, peer_seconds) = (one.judge(pairs[start : start + CHUNK]) for one in (own, peer))
            theirs += verdicts
            totals = [totals[0] + sum(seconds), totals[1] + sum(peer_seconds)]
            ratios.append(sum(peer_seconds) / sum(seconds))
    own_ms, peer_ms = (1000 * total / len(pairs) for total in totals)
    mean = f"{peer_ms / own_ms:.1f} times in the mean of {len(pairs):,} pairs"
    note = f"{own_ms:.2f} and {peer_ms:.1f} CPU ms a pair, {mean}"
    value, interval = middle(ratios)
    return Measured(value, None, interval, note), tuple(zip(pairs, theirs, strict=True))


@gate("speed", Limit(">=", 30, "times Math-Verify"))
def speed() -> Measured:
    """Return the ratio of CPU time on a part of the labelled pairs."""
    return _speed(random.Random(40).sample(labelled_pairs(), SAMPLED))[0]


@gate("speed-all-pairs", Limit(">=", 30, "times Math-Verify"), tier="room")
def speed_all() -> Measured:
    """Return the ratio on all labelled pairs; the note has Math-Verify's mistakes on these and on the drawn ones."""
    measured, verdicts = _speed(random.Random(40).sample(labelled_pairs(), len(labelled_pairs())))
    trusted = tuple(one for one in verdicts if one[0].kind in TRUSTED)
    mistakes = _mistakes(trusted)
    with Verifier("Math-Verify") as peer:
        accepted, refused = (
            len(_mistakes(tuple(zip(pairs, peer.judge(pairs)[0], strict=True)))) for pairs in drawn_pairs()
        )
    note = (
        f"Math-Verify is right on {100 - 100 * len(mistakes) / len(trusted):.1f} % of the trusted pairs with "
        f"{sum(not pair.equal for pair in mistakes)} false positives, accepts {accepted} of {DRAWN} near misses and "
        f"refuses {refused} of {DRAWN} rewritings"
    )
    return replace(measured, note=f"{measured.note}; {note}")
