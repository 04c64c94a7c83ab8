"""A policy that reads a problem and its translation, and says whether they ask the same.

Rules see numbers, names and words; who has what, of which whole, before or after, a reader sees. What the rules accept
is read, too, and refused where the share of votes that call it different reaches a threshold (a veto). What the rules
refuse for weighing words alone (`overrulable`) may be overruled, where that is switched on: by readers who are told the
suspicion and all say that both texts ask the same.

Invariants: a vote that cannot be read, was not given, or that the reader's servers refused, is no vote; with fewer
readable votes than were asked for nothing is decided: the rules' word stands, and the record says so. Votes are asked
for by the texts alone, so a text that comes back costs nothing where replies are kept (`replies`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from curation.policies.failure_budget import FailureBudget
from curation.prompts.reading import READING, read_difference, reading_request
from curation.questions.votes import Vote
from curation.records import Policy, PromptRequest, RequestRefused
from curation.translation.equivalence import check_equivalence
from curation.translation.invariants import CheckedText, reasons
from curation.translation.numerals import in_digits, plain_digits
from curation.translation.readings import as_the_original_reads
from curation.translation.violations import Violation

VOTE = Vote(name="readings", title="Translations read", prompt=READING, words=("same", "different"))
NAME = "reader"
"""What a veto is called among the invariants."""

WEIGHED = frozenset({"entities", "polarity", "comparisons", "order", "sentences", "units"})
"""The invariants that weigh words; numbers in words count among them (`overrulable`)."""
_BEFORE_SENTENCES = frozenset({"numbers", "units"})
"""Where one of these is broken, the rules of sentences did not look (`check_translation`)."""
LEAST_TO_OVERRULE = 2


def overrulable(
    violations: Sequence[Violation], original: CheckedText, translated: CheckedText, source: str, target: str
) -> tuple[Violation, ...]:
    """Return what rules that weigh words hold against a translation; empty where another rule refuses it, too.

    A violation of the numbers counts as such where the numbers in digits are the same: then it is one in words. Where
    the rules of sentences did not look, what they say is added.
    """
    names = {violation.invariant for violation in violations}
    if "numbers" in names and _digits(original, source) != _digits(translated, target):
        return ()
    if names & _BEFORE_SENTENCES:
        statement = as_the_original_reads(original.statement, translated.statement, source, target)
        added = check_equivalence(original.statement, statement, source, target)
        violations = list(dict.fromkeys([*violations, *added]))
        names = {violation.invariant for violation in violations}
    return tuple(violations) if names <= WEIGHED | {"numbers"} else ()


def _digits(text: CheckedText, lang: str) -> Counter[frozenset[Fraction]]:
    whole = plain_digits("\n".join([text.statement, *text.choices]))
    return Counter(token.values for token in in_digits(whole, lang))


@dataclass(frozen=True, slots=True)
class Reading:
    """What the votes on one translation came to.

    Example: ``Reading(2, 2, 0, False, (), ("order",))``: two votes, both the same; the rule of order is overruled.
    """

    asked: int
    same: int
    different: int
    refused: bool
    differences: tuple[str, ...] = ()
    overruled: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        """Return whether as many votes as were asked for could be read."""
        return self.same + self.different == self.asked

    @property
    def outcome(self) -> str:
        """Return what is counted: refused, overruled, undecided, or nothing."""
        if not self.decided:
            return "undecided"
        return "refused" if self.refused else "overruled" if self.overruled else ""

    def record(self) -> dict[str, Any]:
        """Return what a translated row keeps of it."""
        votes = {"asked": self.asked, "same": self.same, "different": self.different, "decided": self.decided}
        return {**votes, "overruled": list(self.overruled)} if self.overruled else votes


class Reader:
    """A policy that is asked with the reading prompt, and what its votes decide. The policy is entered.

    Args:
        reads: votes on each translation.
        threshold: least share of votes that call it different, from which a translation is refused.
        overrule: whether readers may overrule rules that weigh words; never by fewer than two votes.
        budget: how many translations the policy's servers may refuse.
    """

    def __init__(self, policy: Policy, reads: int, threshold: float, *, overrule: bool, budget: FailureBudget) -> None:
        self._policy = policy
        self._reads = reads
        self._threshold = threshold
        self._overrule = overrule and reads >= LEAST_TO_OVERRULE
        self._budget = budget

    async def review(
        self,
        original: CheckedText,
        translated: CheckedText,
        languages: tuple[str, str],
        violations: Sequence[Violation],
        domain: str | None = None,
    ) -> tuple[Reading | None, list[Violation]]:
        """Read what the rules accept or may be wrong about; return the votes and the violations that stand then.

        Args:
            languages: the original's and the translation's.
            violations: what the rules hold against the translation.

        Returns:
            None for the votes where nobody was asked: a rule stands that no reader overrules.

        Raises:
            PolicyError: the policy cannot answer, or its servers refuse too many translations.
        """
        source, target = languages
        suspicion: str | None = None
        if violations:
            weighed: tuple[Violation, ...] = ()
            if self._overrule:
                weighed = await asyncio.to_thread(overrulable, violations, original, translated, source, target)
            if not weighed:
                return None, list(violations)
            suspicion = reasons(weighed)
        request = reading_request(*_written(original, translated), target, suspicion, domain)
        reading = await self.read(request, tuple(dict.fromkeys(one.invariant for one in violations)))
        if violations:
            return reading, [] if reading.overruled else list(violations)
        if not reading.refused:
            return reading, []
        why = reading.differences[0] if reading.differences else "it does not ask the same as the original"
        return reading, [Violation(NAME, why)]

    async def read(self, request: PromptRequest, suspected: tuple[str, ...] = ()) -> Reading:
        """Ask for the votes on one request and count them; only where all of them can be read do they decide.

        Args:
            suspected: the invariants whose suspicion the request tells, overruled where all votes call both the same.
        """
        texts = list(await asyncio.gather(*(self._vote(request, index) for index in range(self._reads))))
        attempts = pl.DataFrame({"problem": [request.id] * len(texts), "text": texts}, _VOTES)
        tally = VOTE.tally(pl.Series([request.id]), attempts)
        (votes,), (decision,) = tally.to_dicts(), VOTE.decide(tally, self._threshold, self._reads).to_dicts()
        same, different = votes["same"], votes["different"]
        read = (read_difference(text) for text in texts if VOTE.read(text) == "different")
        differences = tuple(one for one in read if one is not None)
        if suspected:
            is_same = decision["enough"] and not different
            return Reading(self._reads, same, different, False, differences, suspected if is_same else ())
        return Reading(self._reads, same, different, decision["decision"] == "different", differences)

    async def _vote(self, request: PromptRequest, index: int) -> str | None:
        try:
            completion = await self._policy.answer(request, index)
        except RequestRefused as refused:
            self._budget.count_refusal(request.id, refused)
            return None
        self._budget.count_answer()
        return completion.text if completion is not None else None


_VOTES = {"problem": pl.String, "text": pl.String}


def _written(original: CheckedText, translated: CheckedText) -> tuple[str, str]:
    """Return both problems as the reader sees them: with their options, and with an answer that was translated."""
    is_worded = original.answer != translated.answer
    return _whole(original, is_worded), _whole(translated, is_worded)


def _whole(text: CheckedText, is_worded: bool) -> str:
    options = ["Options:\n" + "\n".join(text.choices)] if text.choices else []
    answer = [f"Answer: {text.answer}"] if is_worded and text.answer is not None else []
    return "\n\n".join([text.statement, *options, *answer])
