"""Decisions on difficulty: a refresh with an anchor, early stopping, wrong labels.

Every figure is computed from fixed seeds, so it is the same on each machine. Limits are the figures of 2026-11-28 with
some room: wrong decisions and the attempts of a refresh .3 points, attempts per decision rounded up to a tenth, labels
a tenth of the figure.

Not here: the recorded weak policy that accused .3 % of sound labels (CodeLlama 7B on CRUXEval), which is not among the
shared data. Simulated weak policies are in its place, one that repeats its errors as it did.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from statistics import median

from tests.benchmarks.labelled_attempts import Answers, plant, recorded, simulated
from tests.gates import decisions
from tests.gates.base import Limit, Measured, Tier, gate, share, shared
from tests.gates.decisions import CONCENTRATIONS, SHIFTS, Refreshed, Saved, Stopped

PROBLEMS = 2000
PLANTED = 0.05
"""The share of labels that is made wrong."""

WEAK: Mapping[str, tuple[float, tuple[float, float]]] = {
    "solves .72": (1.5, (1.0, 2.0)),
    "solves .27": (-1.5, (1.0, 2.0)),
    "solves .27 and repeats its errors": (-1.5, (4.0, 1.0)),
}
"""Weak policies that are alone: their strength in logits, and how often they repeat an error (parameters of Beta)."""


@cache
def refreshes() -> dict[tuple[float | None, float], Refreshed]:
    """Return a refresh with an anchor for each concentration and step in strength."""
    return {
        (concentration, shift): decisions.refreshed(PROBLEMS, shift, concentration)
        for concentration in CONCENTRATIONS
        for shift in SHIFTS
    }


def cell(key: tuple[float | None, float]) -> str:
    """Return the words for one refresh."""
    concentration, shift = key
    alike = "alike in all but strength" if concentration is None else f"concentration {concentration:g}"
    return f"a step of {shift:+g} logits, {alike}"


@gate("refresh-wrong", Limit("<=", 4.0, "%"))
def refresh_wrong() -> Measured:
    """Measure the share of decisions that a refresh takes otherwise than a full judgement, in the worst of 18 cells."""
    found = refreshes()
    worst = max(found, key=lambda key: found[key].differ)
    wrong = round(found[worst].differ * PROBLEMS)
    mean = 100 * sum(one.differ for one in found.values()) / len(found)
    note = f"{cell(worst)}; mean of {len(found)} cells {mean:.2f} %"
    return share(wrong, PROBLEMS, note)


@gate("refresh-attempts", Limit("<=", 61.4, "%"))
def refresh_attempts() -> Measured:
    """Measure what share of a full judgement's attempts a refresh makes if the policy has not become worse."""
    return share_of_attempts(weaker=False)


@gate("refresh-attempts-weaker", Limit("<=", 66.2, "%"))
def refresh_attempts_weaker() -> Measured:
    """Measure what share of a full judgement's attempts a refresh makes if the policy has become worse."""
    return share_of_attempts(weaker=True)


def share_of_attempts(*, weaker: bool) -> Measured:
    """Return the largest share of attempts among refreshes by a weaker policy, or by all others."""
    found = {key: one.cost for key, one in refreshes().items() if (key[1] < 0) == weaker}
    worst = max(found, key=lambda key: found[key])
    note = f"{cell(worst)}; mean of {len(found)} cells {100 * sum(found.values()) / len(found):.1f} %"
    return Measured(100 * found[worst], note=note)


@cache
def exactly_stopped() -> dict[tuple[str, int], Saved]:
    """Return what exact early stopping saves and changes, by pool of problems and attempts a problem."""
    attempts, found = decisions.recorded(shared("attempts", "odyssey_models.jsonl")), {}
    for size in (8, 16, 32):
        sequences = {"recorded": decisions.ordered(attempts, size, PROBLEMS, random.Random(size))}
        for name, pool in decisions.POOLS.items():
            sequences[name] = decisions.simulated_pool(*pool, size, PROBLEMS, random.Random(size))
        found |= {(name, size): decisions.exactly_stopped(size, some) for name, some in sequences.items()}
    return found


@gate("stopping-changed", Limit("==", 0, "decisions"))
def stopping_changed() -> Measured:
    """Count decisions that exact early stopping changes."""
    found = exactly_stopped()
    return Measured(sum(one.differ for one in found.values()), of=len(found) * PROBLEMS)


@gate("stopping-attempts", Limit("<=", 12.8, "a decision"))
def stopping_attempts() -> Measured:
    """Measure the attempts that exact early stopping makes for a decision on 16, in the mean of five pools."""
    made = {name: 16 * (1 - one.saved) for (name, size), one in exactly_stopped().items() if size == 16}
    note = ", ".join(f"{name} {attempts:.2f}" for name, attempts in made.items())
    return Measured(sum(made.values()) / len(made), note=note)


@cache
def stopped_by_the_model() -> dict[float | None, list[Stopped]]:
    """Return what early stopping with the model's priors comes to at 32 attempts and an error rate of .1, by draw.

    In one draw of eighteen the model is refused, for it does not fit the anchor; which one depends on the machine's
    mathematical functions, so there are three draws.
    """
    seeds = (11, 1011, 2011)
    return {
        one: [decisions.stopped_by_the_model(PROBLEMS, one, 32, 0.1, seed) for seed in seeds] for one in CONCENTRATIONS
    }


@gate("stopping-attempts-model", Limit("<=", 8.4, "a decision"))
def stopping_attempts_model() -> Measured:
    """Measure the attempts for a decision with the model's priors: the median draw of the worst concentration."""
    return Measured(
        max(median(one.attempts / one.problems for one in draws) for draws in stopped_by_the_model().values())
    )


@gate("stopping-wrong-model", Limit("<=", 11.8, "%"))
def stopping_wrong_model() -> Measured:
    """Measure the share of decisions with the model's priors that are not those of the true pass rate."""
    pooled = [
        (sum(one.wrong for one in draws), sum(one.other for one in draws), sum(one.problems for one in draws))
        for draws in stopped_by_the_model().values()
    ]
    wrong, _, problems = max(pooled)
    note = f"{100 * max(other / every for _, other, every in pooled):.1f} % at most are not those of all 32 attempts"
    return share(wrong, problems, note)


@dataclass(frozen=True, slots=True)
class Accused:
    """What a run decides about labels: counts over all draws."""

    sound: int
    wrong: int
    accused: int
    hits: int

    def recall(self) -> Measured:
        """Return the share of planted wrong labels that is found."""
        return share(self.hits, self.wrong, f"{self.hits} of {self.wrong}")

    def precision(self) -> Measured:
        """Return the share of accused labels that is wrong."""
        return share(self.hits, self.accused, f"{self.hits} of {self.accused}")


def decided(answers: Answers, draws: int, rate: float = PLANTED) -> Accused:
    """Plant wrong labels `draws` times and count what a run decides."""
    sound = wrong = accused = hits = 0
    for seed in range(draws):
        planted = plant(answers, rate, seed)
        found = decisions.accused(answers, planted)
        wrong += len(planted.wrong)
        sound += len(answers) - len(planted.wrong)
        accused += len(found)
        hits += len(found & planted.wrong)
    return Accused(sound, wrong, accused, hits)


@gate("labels-weak-policy", Limit("<=", 0.33, "%"))
def labels_weak_policy() -> Measured:
    """Measure the share of sound labels that one weak policy accuses, with wrong labels planted and without."""
    sound = accused = 0
    for ability, repeats in WEAK.values():
        answers = simulated(1000, {"weak": ability}, 10, seed=3, repeats=repeats)
        for rate in (0.0, PLANTED):
            found = decided(answers, 1, rate)
            sound, accused = sound + found.sound, accused + found.accused - found.hits
    return share(accused, sound, f"{accused} of {sound:,}; {', '.join(WEAK)}")


@cache
def accused_by(policies: str) -> Accused:
    """Return what policies find: a 7B model and a grader, 16 attempts each; four strong ones, 8 each; 18 recorded ones.

    The recorded ones have one attempt each at the problems of Odyssey; labels that were wrong before count as sound.
    """
    if policies == "two":
        return decided(simulated(1000, {"7b": 1.0, "grader": 2.5}, 16, seed=1), draws=1)
    if policies == "strong":
        return decided(simulated(1000, {"a": 2.0, "b": 2.5, "c": 3.0, "d": 3.5}, 8, seed=1), draws=2)
    return decided(dict(sorted(recorded(shared("attempts", "odyssey_models.jsonl")).items())), draws=3)


LABELS: tuple[tuple[str, Tier, str, float, float], ...] = (
    ("two", "quick", "", 86.4, 83.1),
    ("strong", "room", "-strong", 88.2, 87.3),
    ("recorded", "room", "-recorded", 41.0, 39.0),
)
"""Policies, the tier and the ending of the names of their gates, and the limits of recall and precision."""

for _policies, _tier, _end, _recall, _precision in LABELS:
    _found = partial(accused_by, _policies)
    gate(f"labels-found{_end}", Limit(">=", _recall, "%"), tier=_tier)(lambda found=_found: found().recall())
    gate(f"labels-found-rightly{_end}", Limit(">=", _precision, "%"), tier=_tier)(
        lambda found=_found: found().precision()
    )
