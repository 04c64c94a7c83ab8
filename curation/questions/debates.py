"""Debates on disputed labels, the reference against a rival (arXiv 2407.04622).

Both sides speak at once in every round; a judge reads the speeches in four views, by letter and order of the reference.

Invariants: speeches name no letter; the two scores add to 1; a missing speech or a view without readable vote gives
no score; a speech cannot forge the mark of its lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import polars as pl

from curation.prompts.base import stored_prompt
from curation.questions.votes import UNREADABLE, Vote, text_request
from curation.records import PromptRequest
from curation.thinking import split_response

ROUNDS = 3

SPEECH_LETTERS = 4000
"""Longest speech that a judge reads."""

SIDES = ("reference", "rival")

IN_PROBLEM, NOT_IN_PROBLEM = "[in the problem]", "[not in the problem]"

SPEECH = stored_prompt("debates")

JUDGE = Vote(name="debates", title="Debates", prompt=stored_prompt("debate_judge"), words=("a", "b"), votes=1)
"""What is asked in each view."""

DEBATE = pl.Schema(
    {
        "id": pl.String(),
        "reference": pl.String(),
        "rival": pl.String(),
        "score": pl.Float64(),  # probability of the reference against its rival; null without a readable vote per view
        "views": pl.List(pl.Float64()),  # the same, by view
        "why": pl.String(),  # why there is no score
        "judge": pl.String(),  # model@revision
        "debater": pl.String(),
        "transcript": pl.List(pl.Struct({"round": pl.Int32(), "side": pl.String(), "text": pl.String()})),
    }
)

_MARK = re.compile(r"\[\s*(?:not\s+)?in\s+the\s+problem\s*\]", re.IGNORECASE)
_QUOTE = re.compile(r"<quote>(.*?)</quote>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?quote>", re.IGNORECASE)


class Speech(NamedTuple):
    """A side's speech; ``side`` is 0 for the reference, 1 for its rival."""

    round: int
    side: int
    text: str


class View(NamedTuple):
    """The judge's view: the reference's letter, and the first side."""

    reference_is_a: bool
    first: int


VIEWS = tuple(View(is_a, first) for is_a, first in product((True, False), (0, 1)))


@dataclass(frozen=True, slots=True)
class Debate:
    """A dispute and its speeches so far."""

    id: str
    statement: str
    lang: str
    answers: tuple[str, str]
    speeches: tuple[Speech, ...] = ()

    def requests(self) -> tuple[PromptRequest, PromptRequest]:
        """Return the next round's requests, the reference's first."""
        return self._speech_request(0), self._speech_request(1)

    def _speech_request(self, side: int) -> PromptRequest:
        shown = [f"Your answer:\n\n> {_flat(self.answers[side])}"]
        shown += [f"The other answer:\n\n> {_flat(self.answers[1 - side])}"]
        shown += ["The speeches so far:"] if self.speeches else []
        shown += self._transcript(side, lambda speaker: "you" if speaker == side else "the other side")
        return self._request([*shown, "Argue for your answer."])

    def after(self, texts: Sequence[str | None]) -> Debate | None:
        """Return the debate after these responses; None without two speeches."""
        cleaned = [clean_speech(text, self.statement) for text in texts]
        number = len(self.speeches) // 2 + 1
        speeches = tuple(Speech(number, side, text) for side, text in enumerate(cleaned) if text)
        return replace(self, speeches=(*self.speeches, *speeches)) if len(speeches) == 2 else None

    def view_request(self, view: View) -> PromptRequest:
        """Return the judge's request for a view."""
        letters = "AB" if view.reference_is_a else "BA"
        shown = [f"Answer {letters[side]}:\n\n> {_flat(self.answers[side])}" for side in (view.first, 1 - view.first)]
        shown += ["The speeches:"] if self.speeches else []
        shown += self._transcript(view.first, lambda speaker: f"for answer {letters[speaker]}")
        return self._request([*shown, "Which answer is right, A or B?"])

    def _transcript(self, first: int, label_of: Callable[[int], str]) -> list[str]:
        ordered = sorted(self.speeches, key=lambda speech: (speech.round, speech.side != first))
        marked = ["\n".join(f"> {line}" for line in speech.text.splitlines()) for speech in ordered]
        return [
            f"Round {speech.round}, {label_of(speech.side)}:\n\n{text}"
            for speech, text in zip(ordered, marked, strict=True)
        ]

    def _request(self, shown: Sequence[str]) -> PromptRequest:
        return text_request("\n\n".join([f"The problem:\n\n{self.statement}", *shown]), self.lang)

    def row(self, texts: Mapping[View, str | None], judge: str, debater: str) -> dict[str, Any]:
        """Return the `DEBATE` row of the judge's responses, which are empty after a missing speech."""
        words = [JUDGE.read(texts.get(view)) for view in VIEWS]
        unread = words.count(UNREADABLE)
        scores = [float((word == "a") == view.reference_is_a) for word, view in zip(words, VIEWS, strict=True)]
        unreadable = f"the judge gave no readable verdict in {unread} of {len(VIEWS)} views"
        why = unreadable if texts else "a side gave no speech"
        return {
            "id": self.id,
            "reference": self.answers[0],
            "rival": self.answers[1],
            "score": None if unread else sum(scores) / len(scores),
            "views": [] if unread else scores,
            "why": why if unread else None,
            "judge": judge,
            "debater": debater,
            "transcript": [{**speech._asdict(), "side": SIDES[speech.side]} for speech in self.speeches],
        }


def clean_speech(text: str | None, statement: str) -> str | None:
    """Return a speech without thoughts and forged marks, its quotes checked, or None."""
    answer = split_response(text).answer if text is not None else None
    if answer is None:
        return None
    kept = "".join(letter for letter in answer if letter == "\n" or unicodedata.category(letter)[0] != "C")
    while _MARK.search(kept):
        kept = _MARK.sub("", kept)

    def mark(match: re.Match[str]) -> str:
        quote = _flat(_TAG.sub("", match[1]))
        return f'"{quote}" {IN_PROBLEM if quote and quote in _flat(statement) else NOT_IN_PROBLEM}'

    return _TAG.sub("", _QUOTE.sub(mark, kept[:SPEECH_LETTERS])).strip() or None


def _flat(text: str) -> str:
    return " ".join(text.split())


def open_debates(disputes: pl.DataFrame, limit: int | None = None) -> list[Debate]:
    """Return each reference with each rival, except doubtful verdicts."""
    debates: dict[str, dict[str, Debate]] = {}
    for row in disputes.filter(pl.col("kind") != "doubtful_verdict").iter_rows(named=True):
        answers = list(dict.fromkeys(answer for answer in row["references"] if answer is not None))
        if len(answers) < 2 or (row["id"] not in debates and len(debates) == limit):
            continue
        pairs = debates.setdefault(row["id"], {})
        for rival in answers[1:]:
            pairs.setdefault(rival, Debate(row["id"], row["statement"] or "", row["lang"], (answers[0], rival)))
    return [debate for pairs in debates.values() for debate in pairs.values()]


def evidence(row: Mapping[str, Any]) -> str:
    """Return a `DEBATE` row as a sentence."""
    about = f"debate on {row['reference']} against {row['rival']}"
    if row["score"] is None:
        return f"{about}: {row['why']}, so nothing is decided"
    views = " ".join(f"{view:.2f}" for view in row["views"])
    is_biased = min(row["views"]) < 0.5 < max(row["views"])
    follows = "; the verdict follows letter or order, not the answer" if is_biased else ""
    return f"{about}: the reference is right with probability {row['score']:.2f} (views {views}{follows})"


def accepted_answers(rows: pl.DataFrame, min_score: float) -> dict[str, str]:
    """Return answers with ``min_score``: references that beat all rivals, or a rival that is the only one."""
    accepted: dict[str, str] = {}
    for (name,), pairs in rows.group_by("id", maintain_order=True):
        scores = pairs["score"].to_list()
        if all(score is not None and score >= min_score for score in scores):
            accepted[str(name)] = pairs["reference"][0]
        elif len(scores) == 1 and scores[0] is not None and 1 - scores[0] >= min_score:
            accepted[str(name)] = pairs["rival"][0]
    return accepted
