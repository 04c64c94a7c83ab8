"""What is counted of made tests, package by package, and how it is printed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

PARTS = ("looked_at", "held_out")


@dataclass(slots=True)
class Scored:
    """What was counted of one package."""

    name: str
    valid: int = 0
    made: int = 0
    run: int = 0
    run_valid: int = 0
    right: int = 0
    right_passed: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)  # label, what caught it: samples, made, none
    seconds: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    answers: int = 0
    cpu_s: float = 0.0
    vouched: dict[str, int] = field(default_factory=dict)


def part_of(name: str) -> str:
    """Return whether the generators' authors may look at a package, or only score on it: by its name's hash."""
    return PARTS[hashlib.sha256(name.encode()).digest()[0] % 2]


def show(scored: Scored, way: str) -> None:
    """Print what was counted of one package."""
    counts = Counter(how for _, how in scored.wrong)
    caught = counts["samples"] + counts["made"]
    share = scored.valid / max(1, scored.made)
    name = f"{scored.name} ({part_of(scored.name).replace('_', ' ')}, validators {way})"
    print(f"{name}: valid {scored.valid}/{scored.made} ({share:.0%}), TPR {scored.right_passed}/{scored.right}, "
          f"TNR {caught}/{len(scored.wrong)} {dict(counts)}, {scored.seconds:.0f} s, CPU {scored.cpu_s:.1f} s",
          flush=True)  # fmt: skip
    if scored.answers:
        print(f"    {scored.answers} answer; vouched for by {scored.vouched}", flush=True)
    for why, folds in scored.reasons.items():
        if why:
            print(f"    {folds} of {sum(scored.reasons.values())} folds: {why}", flush=True)
    for note in scored.notes:
        print(f"    {note}", flush=True)


def report(title: str, all_scored: Sequence[Scored]) -> None:
    """Print the totals."""
    made, valid = sum(s.made for s in all_scored), sum(s.valid for s in all_scored)
    ran, ran_valid = sum(s.run for s in all_scored), sum(s.run_valid for s in all_scored)
    right, passed = sum(s.right for s in all_scored), sum(s.right_passed for s in all_scored)
    wrong = [entry for s in all_scored for entry in s.wrong]
    hows = Counter(how for _, how in wrong)
    caught = hows["samples"] + hows["made"]
    passing = hows["made"] + hows["none"]
    seconds = sorted(s.seconds for s in all_scored)
    print(f"== {title}: {len(all_scored)} packages, {sum(seconds):.0f} s, half of them within "
          f"{seconds[len(seconds) // 2] if seconds else 0:.0f} s; nothing made for "
          f"{sum(not s.made for s in all_scored)}")  # fmt: skip
    print(f"inputs that were run: {ran_valid} of {ran} valid ({ran_valid / max(1, ran):.1%})")
    print(f"inputs that were kept: {valid} of {made} valid ({valid / max(1, made):.1%})")
    print(f"TPR {passed} of {right} ({passed / max(1, right):.1%})")
    print(f"TNR {caught} of {len(wrong)} ({caught / max(1, len(wrong)):.1%}); the samples alone {hows['samples']}; "
          f"of the {passing} that these let pass {hows['made']} ({hows['made'] / max(1, passing):.1%})")  # fmt: skip
    for label in sorted({label for label, _ in wrong}):
        own = Counter(how for kind, how in wrong if kind == label)
        print(f"  {label}: samples {own['samples']}, made {own['made']}, none {own['none']}")
    reasons = Counter(max(s.reasons, key=lambda why: s.reasons[why]).split(":")[0] for s in all_scored if s.reasons)
    print(
        "  packages by how the making ended: " + "; ".join(f"{why or 'made'} {n}" for why, n in reasons.most_common())
    )
