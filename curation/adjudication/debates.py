"""Debates on disputed labels: who says what when, what the judge is shown, and what its votes come to.

One dispute is two answers to one problem, the reference and its rival. By protocol the judge is shown no speech
(`direct`), those of one side (`consultancy`), or those of both sides, who speak at once in every round (`debate`).
Every dispute is judged in four views: the reference is A or B, and the other order of what is shown — which answer is
listed and heard first, or, in a consultancy, whose side is argued (arXiv 2407.04622, who take both at random).

Invariants: pure functions; a speech names no letter, so that all views share the speeches; the views of a swapped
dispute are those of the dispute, so that swapping the answers swaps the score, whatever the judge; scores of the two
sides add to 1; a dispute without all its speeches, or with a view that no readable vote tells of, has no score; every
dispute has one row. What a speaker says stays text: each of its lines is marked, and it cannot write a mark.

Not here: who is asked (the flow), and the prompts (`curation.prompts.debating`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, fsum
from typing import Any

import polars as pl

from curation.prompts.debating import speech_request, view_request
from curation.questions.votes import read_verdict
from curation.records import PromptRequest
from curation.thinking import split_response

VERSION = "adjudication@1"

LETTERS = ("A", "B")

SIDES = ("reference", "rival")

SPEECH_LETTERS = 4000
"""What a judge is shown of one speech at most."""

IN_PROBLEM, NOT_IN_PROBLEM = "[stands in the problem]", "[does not stand in the problem]"

_MARK = re.compile(r"\[\s*(?:does\s+not\s+)?stands?\s+in\s+the\s+problem\s*\]", re.IGNORECASE)
_QUOTE = re.compile(r"<quote>(.*?)</quote>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?quote>", re.IGNORECASE)
_NAMED = re.compile(r"\b[Aa]nswer(?:\s+is|\s*:)[\s*(]*([AB])(?=[.,;:!*)]|\s*$)", re.MULTILINE)


class Protocol(StrEnum):
    """Who speaks before the judge."""

    DEBATE = "debate"
    CONSULTANCY = "consultancy"
    DIRECT = "direct"


class State(StrEnum):
    """What became of a dispute."""

    JUDGED = "judged"
    ONE_ANSWER = "one_answer"  # nothing stands against the reference
    OTHER_QUESTION = "other_question"  # whether two answers are the same is no matter of which one is right
    NOT_ASKED = "not_asked"  # beyond the number of disputes that were to be asked about
    NO_SPEECH = "no_speech"  # a debater was refused or said nothing
    NO_VERDICT = "no_verdict"  # a view without a readable vote of the judge


ADJUDICATION = pl.Schema(
    {
        "id": pl.String(),
        "kind": pl.String(),  # of the dispute, as in `curation.publish.review.KINDS`
        "protocol": pl.String(),
        "reference": pl.String(),
        "rival": pl.String(),  # null where there is none
        "state": pl.String(),
        "score": pl.Float64(),  # probability of the reference against its rival; null unless judged
        "views": pl.List(pl.Float64()),  # the same, by view
        "votes": pl.Int32(),  # readable ones
        "unreadable": pl.Int32(),
        "judge": pl.String(),  # model@revision
        "debater": pl.String(),  # null where nobody spoke
        "transcript": pl.List(pl.Struct({"round": pl.Int32(), "side": pl.String(), "text": pl.String()})),
    }
)


@dataclass(frozen=True, slots=True)
class Speech:
    """What one side said in one round, as the judge may see it. ``side`` is 0 for the reference, 1 for its rival."""

    round: int
    side: int
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """One way of showing a dispute to the judge.

    ``reference_is_a`` says which letter the reference has; ``side`` who is listed and heard first, or whose side alone
    is heard in a consultancy.
    """

    reference_is_a: bool
    side: int


VIEWS = tuple(View(is_a, side) for is_a in (True, False) for side in (0, 1))


@dataclass(frozen=True, slots=True)
class Debate:
    """A dispute, and what was said of it so far.

    Example: ``Debate("3f2a…", "suspected_wrong_label", "What is 9 times 10?", "en", ("91", "90"), Protocol.DIRECT)``
    """

    id: str
    kind: str
    statement: str
    lang: str
    answers: tuple[str, str]
    protocol: Protocol
    speeches: tuple[Speech, ...] = ()

    def requests(self) -> tuple[PromptRequest, ...]:
        """Return what the two sides are asked in the next round, the reference's first."""
        return tuple(
            speech_request(
                self.statement, self.lang, _flat(self.answers[side]), _flat(self.answers[1 - side]), self._heard(side)
            )
            for side in (0, 1)
        )

    def with_speeches(self, round_number: int, texts: Sequence[str | None]) -> Debate | None:
        """Return the debate after a round; None where a side said nothing."""
        said = [speech_of(text, self.statement) for text in texts]
        if len(said) != 2 or not all(said):
            return None
        new = tuple(Speech(round_number, side, text or "") for side, text in enumerate(said))
        return Debate(
            self.id, self.kind, self.statement, self.lang, self.answers, self.protocol, (*self.speeches, *new)
        )

    def view_request(self, view: View) -> PromptRequest:
        """Return what the judge is asked in a view."""
        letters = LETTERS if view.reference_is_a else LETTERS[::-1]
        order = [view.side, 1 - view.side]
        if self.protocol is Protocol.CONSULTANCY:
            order.sort(key=lambda side: letters[side])
        shown = [(letters[side], _flat(self.answers[side])) for side in order]
        heard = [
            f"Round {speech.round}, for answer {letters[speech.side]}:\n\n{_marked(speech.text)}"
            for speech in self._in_order(view)
        ]
        return view_request(self.statement, self.lang, shown, "\n\n".join(heard))

    def _in_order(self, view: View) -> list[Speech]:
        if self.protocol is Protocol.CONSULTANCY:
            return self._said(view.side)
        return sorted(self.speeches, key=lambda speech: (speech.round, speech.side != view.side))

    def _said(self, side: int) -> list[Speech]:
        return [speech for speech in self.speeches if speech.side == side]

    def _heard(self, side: int) -> str:
        """Return what a side knows of earlier rounds: all of it in a debate, its own in a consultancy."""
        is_debate = self.protocol is Protocol.DEBATE
        known = sorted(self.speeches, key=lambda speech: (speech.round, speech.side != side))
        return "\n\n".join(
            f"Round {speech.round}, {'you' if speech.side == side else 'the other side'}:\n\n{_marked(speech.text)}"
            for speech in known
            if is_debate or speech.side == side
        )


def speech_of(text: str | None, statement: str) -> str | None:
    """Return a speech as others may see it: without its thoughts and marks, quotes marked; None where it is empty.

    Args:
        statement: what quotes are looked for in, whatever their spaces.
    """
    said = split_response(text).answer if text is not None else None
    if said is None:
        return None
    kept = "".join(letter for letter in said if letter == "\n" or unicodedata.category(letter)[0] != "C")
    while _MARK.search(kept):
        kept = _MARK.sub("", kept)
    flat = _flat(statement)

    def mark(match: re.Match[str]) -> str:
        quote = _flat(_TAG.sub("", match[1]))
        return f'"{quote}" {IN_PROBLEM if quote and quote in flat else NOT_IN_PROBLEM}'

    return _TAG.sub("", _QUOTE.sub(mark, kept[:SPEECH_LETTERS])).strip() or None


def _marked(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _flat(text: str) -> str:
    return " ".join(text.split())


def open_debates(
    disputes: pl.DataFrame, protocol: Protocol, other_kinds: Sequence[str], most: int | None
) -> tuple[list[Debate], list[dict[str, Any]]]:
    """Return the disputes to be judged, and a row of `ADJUDICATION` for each that is not; pairs that recur stand once.

    Args:
        disputes: `curation.publish.review.DISPUTE` rows, in the order in which they are asked.
        other_kinds: kinds whose question is not which answer is right.
        most: how many are asked; all where None.
    """
    debates: list[Debate] = []
    rows: list[dict[str, Any]] = []
    seen: set[tuple[str, str, str | None]] = set()
    for row in disputes.iter_rows(named=True):
        answers = list(dict.fromkeys(answer for answer in row["references"] if answer is not None))
        rivals = answers[1:] or [None]
        for rival in rivals:
            reference = answers[0] if answers else ""
            if (row["id"], reference, rival) in seen:
                continue
            debate = Debate(
                row["id"], row["kind"], row["statement"] or "", row["lang"], (reference, rival or ""), protocol
            )
            state = _state(row["kind"] in other_kinds, rival, most is not None and len(debates) >= most)
            if state is None:
                debates.append(debate)
            else:
                rows.append(unjudged_row(debate, state))
            if state is not State.OTHER_QUESTION:  # the same pair may be disputed for another reason too
                seen.add((row["id"], reference, rival))
    return debates, rows


def _state(is_other: bool, rival: str | None, is_beyond: bool) -> State | None:
    if is_other:
        return State.OTHER_QUESTION
    if rival is None:
        return State.ONE_ANSWER
    return State.NOT_ASKED if is_beyond else None


def reading(text: str | None, logprobs: Sequence[float] | None = None) -> tuple[str, float] | None:
    """Return the letter of a vote, and the probability that the judge gives it; None where it cannot be read.

    A verdict is a vote, of probability 1, as is "the answer is B" where nothing else is named. A bare letter with the
    log-probabilities of its tokens has that of its first.

    Example: ``reading("Both steps hold.\\nVERDICT: B") == ("B", 1.0)``
    """
    answer = split_response(text).answer if text is not None else None
    bare = (answer or "").strip().strip("().:*").upper()
    if bare in LETTERS:
        is_alone = logprobs is not None and 1 <= len(logprobs) <= 2  # the letter, and the end of the turn
        return bare, exp(logprobs[0]) if logprobs is not None and is_alone else 1.0
    letter = read_verdict(text, LETTERS)
    if letter is None:
        named = set(_NAMED.findall(answer or ""))
        letter = named.pop() if len(named) == 1 else None
    return (letter, 1.0) if letter is not None else None


def probability_of_a(votes: Sequence[tuple[str, float]]) -> float:
    """Return the judge's probability of A in a view, from its readable votes.

    Votes count alike. Where votes tell their letter's probability, it is pA / (pA + pB); of a letter that was never
    drawn, at most what the other one leaves is taken.
    """
    told = {letter: fsum(p for one, p in votes if one == letter) for letter in LETTERS}
    counts = {letter: sum(one == letter for one, _ in votes) for letter in LETTERS}
    if all(p == 1.0 for _, p in votes):
        return counts["A"] / len(votes)
    means = {letter: told[letter] / counts[letter] for letter in LETTERS if counts[letter]}
    a = means.get("A", 1 - means.get("B", 0.0))
    b = means.get("B", 1 - means.get("A", 0.0))
    return a / (a + b)


def judged_row(
    debate: Debate,
    votes: Mapping[View, Sequence[tuple[str | None, Sequence[float] | None]]],
    judge: str,
    debater: str | None,
) -> dict[str, Any]:
    """Return the `ADJUDICATION` row of a debate.

    Args:
        votes: texts and log-probabilities of the judge's responses, by view.
    """
    read = {view: [vote for one in votes.get(view, ()) if (vote := reading(*one)) is not None] for view in VIEWS}
    asked = sum(len(votes.get(view, ())) for view in VIEWS)
    readable = sum(map(len, read.values()))
    counted = {"votes": readable, "unreadable": asked - readable, "judge": judge, "debater": debater}
    if not all(read.values()):
        return {**unjudged_row(debate, State.NO_VERDICT), **counted}
    views = [of_reference(view, probability_of_a(read[view])) for view in VIEWS]
    judged = {"state": State.JUDGED.value, "score": fsum(views) / len(views), "views": views}
    return {**unjudged_row(debate, State.JUDGED), **counted, **judged}


def of_reference(view: View, of_a: float) -> float:
    """Return the reference's probability in a view, from A's."""
    return of_a if view.reference_is_a else 1 - of_a


def unjudged_row(debate: Debate, state: State) -> dict[str, Any]:
    """Return the `ADJUDICATION` row of a dispute without a score."""
    said = [{"round": one.round, "side": SIDES[one.side], "text": one.text} for one in debate.speeches]
    return {
        **dict.fromkeys(ADJUDICATION),
        "id": debate.id,
        "kind": debate.kind,
        "protocol": debate.protocol.value,
        "reference": debate.answers[0],
        "rival": debate.answers[1] or None,
        "state": state.value,
        "views": [],
        "votes": 0,
        "unreadable": 0,
        "transcript": said,
    }


def score_by(debate: Debate, judge: Callable[[PromptRequest], str]) -> float | None:
    """Return the score of a debate under a judge that is a function, with one vote a view."""
    votes = {view: [(judge(debate.view_request(view)), None)] for view in VIEWS}
    score: float | None = judged_row(debate, votes, "", None)["score"]
    return score


def argued_by(debate: Debate, rounds: int, speak: Callable[[PromptRequest], str | None]) -> Debate | None:
    """Return a debate after its rounds under a speaker that is a function; None where it said nothing."""
    current: Debate | None = debate
    for number in rounds_of(debate.protocol, rounds):
        if current is not None:
            current = current.with_speeches(number, [speak(request) for request in current.requests()])
    return current


def rounds_of(protocol: Protocol, rounds: int) -> range:
    """Return the numbers of the rounds in which sides speak; none in `direct`."""
    return range(0) if protocol is Protocol.DIRECT else range(1, rounds + 1)


def evidence(row: Mapping[str, Any]) -> str:
    """Return what an `ADJUDICATION` row says, as a sentence for people."""
    about = f"{row['protocol']} on {row['reference']} against {row['rival']}"
    if row["state"] != State.JUDGED:
        return f"{about}: {STATES[State(row['state'])]}"
    views = " ".join(f"{view:.2f}" for view in row["views"])
    who = f"{row['judge']}, who heard {row['debater']}" if row["debater"] is not None else row["judge"]
    return f"{about}: the reference is right with probability {row['score']:.2f} (views {views}) by {who}"


STATES = {
    State.JUDGED: "judged",
    State.ONE_ANSWER: "nothing stands against the reference",
    State.OTHER_QUESTION: "the question is whether two answers are the same",
    State.NOT_ASKED: "not asked",
    State.NO_SPEECH: "a side said nothing, so nothing is decided",
    State.NO_VERDICT: "the judge gave no readable verdict in every view, so nothing is decided",
}


def accepted_answers(rows: pl.DataFrame, decide_at: float) -> dict[str, str]:
    """Return the answers that the scores are enough to accept, by problem.

    The reference is accepted where it wins every pair of its problem, a rival where there is but one pair.

    Args:
        rows: `ADJUDICATION` rows. decide_at: least probability of the answer.
    """
    accepted: dict[str, str] = {}
    asked = rows.filter(~pl.col("state").is_in([State.ONE_ANSWER.value, State.OTHER_QUESTION.value]))
    for (name,), pairs in asked.group_by("id", maintain_order=True):
        scores = pairs["score"].to_list()
        if all(score is not None and score >= decide_at for score in scores):
            accepted[str(name)] = pairs["reference"][0]
        elif len(scores) == 1 and scores[0] is not None and 1 - scores[0] >= decide_at:
            accepted[str(name)] = pairs["rival"][0]
    return accepted
