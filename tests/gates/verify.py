"""The verifier of answers: right on labelled pairs, near misses, rewritings, and speed against Math-Verify."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from curation.records import Outcome
from curation.verify import answers
from curation.verify.extraction import extract_answer
from tests.gates.answer_pairs import Pair, Verifier, drawn_pairs, labelled_pairs, ours
from tests.gates.base import Limit, Measured, counted, gate, middle, share, shared_rows

CHUNK = 20
"""Pairs that one verifier judges before the other judges them."""

SAMPLED = 320
"""Pairs of the quick comparison of speed."""

TRUSTED = frozenset({"unit_test", "hardverify", "scoring_example", "github_issue"})
"""Kinds of `equivalence.jsonl` whose labels are not a model's."""

Verdicts = Sequence[tuple[Pair, bool]]


@cache
def _trusted() -> Verdicts:
    return [(pair, ours(pair.reference, pair.answer)) for pair in labelled_pairs() if pair.kind in TRUSTED]


def _mistakes(verdicts: Verdicts) -> list[Pair]:
    return [pair for pair, verdict in verdicts if verdict != pair.equal]


def _drawn_mistakes(near: Sequence[bool], equal: Sequence[bool]) -> tuple[list[Pair], list[Pair]]:
    """Return the near misses that are accepted, and the rewritings that are refused."""
    changed, rewritten = (zip(*some, strict=True) for some in zip(drawn_pairs(), (near, equal), strict=True))
    accepted = [pair for pair, verdict in changed if verdict and not pair.equal]
    return accepted, [pair for pair, verdict in rewritten if not verdict]


@cache
def _our_drawn_mistakes() -> tuple[list[Pair], list[Pair]]:
    near, equal = ([ours(pair.reference, pair.answer) for pair in pairs] for pairs in drawn_pairs())
    return _drawn_mistakes(near, equal)


def _listed(pairs: Sequence[Pair]) -> str:
    return "; ".join(f"{pair.reference[-40:]!r} ~ {pair.answer[-40:]!r}" for pair in pairs[:3])


@gate("trusted-pairs", Limit(">=", 95.05, "%"))
def trusted() -> Measured:
    """Return the share of trusted pairs that are judged as labelled."""
    verdicts = _trusted()
    right = len(verdicts) - len(_mistakes(verdicts))
    return share(right, len(verdicts), f"{right:,} of {len(verdicts):,} pairs")


@gate("false-positives", Limit("<=", 3))
def false_positives() -> Measured:
    """Return how many of the trusted pairs that differ are accepted."""
    different = [(pair, verdict) for pair, verdict in _trusted() if not pair.equal]
    accepted = _mistakes(different)
    return counted(len(accepted), len(different), _listed(accepted))


@gate("near-misses-accepted", Limit("<=", 0))
def near_misses() -> Measured:
    """Return how many references with one token changed are accepted."""
    accepted = _our_drawn_mistakes()[0]
    return counted(len(accepted), len(drawn_pairs()[0]), _listed(accepted))


@gate("rewritings-refused", Limit("<=", 0))
def rewritings() -> Measured:
    """Return how many references written in another way are refused."""
    refused = _our_drawn_mistakes()[1]
    return counted(len(refused), len(drawn_pairs()[1]), _listed(refused))


FRAMES = (
    "Working through it step by step gives the result.\n\nSo the final count comes to **{}**.",
    "Hence {} is the number we were looking for.",
    "In conclusion, they end up with exactly \\({}\\) of them.",
    "That leaves us with a grand total of ${}$, as required.",
    "Checking: everything adds up, and the value is {}, which answers the question.",
)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_CALCULATION = re.compile(r"<<[^>]*>>")


@dataclass(frozen=True, slots=True)
class ProseAnswer:
    """A right response in prose to a problem whose reference is a number; ``changed`` states another number."""

    kind: str
    id: str
    statement: str
    reference: str
    text: str

    @property
    def changed(self) -> str:
        right = _value(self.reference)
        other = f"{right + 1:g}" if right < 100_000 else str(int(right) + 1)
        return _NUMBER.sub(lambda match: other if _value(match[0]) == right else match[0], self.text)


def is_accepted(one: ProseAnswer, text: str) -> bool:
    """Return whether a response is judged correct, as an attempt is."""
    found = extract_answer(text)
    if found is None:
        return False
    return answers.compare(one.reference, found.answer, statement=one.statement).outcome is Outcome.CORRECT


@cache
def prose_answers() -> tuple[ProseAnswer, ...]:
    """Return right answers in prose, by the rows of the shared data.

        attempts    correct attempts of four models at GSM8K without their line "A: 26": what is left ends in a sentence
        solutions   every fourth solution of GSM8K's training part without its line "#### 26", written by people
        reworded    the answers of SVAMP in `FRAMES`, which were written after the rules

    The rules of `curation.verify.prose` and `asked.without_words` were made with GSM8K's solutions, so rows of
    `solutions` may have been seen; attempts and frames were not.
    """
    return (*_without_their_line(), *_solutions(), *_reworded())


def _without_their_line() -> Iterator[ProseAnswer]:
    for row in shared_rows("attempts", "gsm8k_openai_models.jsonl"):
        for sample in row["samples"]:
            text, _, line = _CALCULATION.sub("", sample["text"] or "").strip().rpartition("\n")
            if sample["correct"] and line.startswith("A:") and _states(text, row["gold"]):
                yield ProseAnswer("attempts", f"{row['id']} {sample['model']}", row["problem"], row["gold"], text)


def _solutions() -> Iterator[ProseAnswer]:
    for number, row in enumerate(row for row in shared_rows("math", "gsm8k.jsonl") if row["split"] == "train"):
        text = _CALCULATION.sub("", row["solution"].partition("####")[0]).strip()
        if number % 4 == 0 and _states(text, row["answer"]):
            yield ProseAnswer("solutions", row["id"], row["problem"], row["answer"], text)


def _reworded() -> Iterator[ProseAnswer]:
    for number, row in enumerate(shared_rows("math", "svamp.jsonl")):
        reference = row["answer"].removesuffix(".0")
        text = FRAMES[number % len(FRAMES)].format(reference)
        yield ProseAnswer("reworded", row["id"], row["problem"], reference, text)


def _states(text: str, reference: str) -> bool:
    """Return whether the last line of a text has the number."""
    return any(_value(match[0]) == _value(reference) for match in _NUMBER.finditer(text.rpartition("\n")[2]))


def _value(text: str) -> float:
    return float(text.replace(",", ""))


@gate("prose-not-accepted", Limit("<=", 3, "%"))
def prose_not_accepted() -> Measured:
    """Return the share of right answers in prose that are not judged correct; a wrong or doubtful verdict counts."""
    judged = [(one, is_accepted(one, one.text)) for one in prose_answers()]
    refused = Counter(one.kind for one, right in judged if not right)
    counts = Counter(one.kind for one, _ in judged)
    note = "; ".join(f"{kind}: {refused[kind]} of {count:,}" for kind, count in counts.items())
    return share(refused.total(), len(judged), note)


@gate("prose-changed-accepted", Limit("<=", 0))
def prose_changed() -> Measured:
    """Return how many of these answers are accepted after their number was changed."""
    judged = [one for one in prose_answers() if is_accepted(one, one.changed)]
    return counted(len(judged), len(prose_answers()), "; ".join(one.id for one in judged[:5]))


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
    trusted = [one for one in verdicts if one[0].kind in TRUSTED]
    mistakes, (near, equal) = _mistakes(trusted), drawn_pairs()
    with Verifier("Math-Verify") as peer:
        accepted, refused = _drawn_mistakes(peer.judge(near)[0], peer.judge(equal)[0])
    note = (
        f"Math-Verify is right on {100 - 100 * len(mistakes) / len(trusted):.1f} % of the trusted pairs with "
        f"{sum(not pair.equal for pair in mistakes)} false positives, accepts {len(accepted)} of {len(near)} near "
        f"misses and refuses {len(refused)} of {len(equal)} rewritings"
    )
    return replace(measured, note=f"{measured.note}; {note}")
