"""A model's texts, accepted or refused; each retry is a stored request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import polars as pl

from curation.prompts.base import Prompt
from curation.questions.votes import Ask, Request, Selected
from curation.records import PromptRequest, problem_id

T = TypeVar("T")

PREVIOUS, REASONS = "previous", "reasons"
"""Details of a retry: the refused text, and why."""

_PROPOSED = {
    "question": pl.String(),  # the first request's id; null if nothing was asked
    "index": pl.Int32(),  # of the proposal among those to one request
    "tries": pl.Int32(),
    "text": pl.String(),  # the last response
    "accepted": pl.Boolean(),
    "why": pl.String(),  # why nothing was asked, or why it was refused; null if it was accepted
}


def refused_request(request: PromptRequest, previous: str, reasons: str) -> PromptRequest:
    """Return a retry's request, under its own id."""
    details = {**request.details, PREVIOUS: previous, REASONS: reasons}
    name = problem_id("\n".join((request.id, previous, reasons)), domain=request.domain)
    return replace(request, id=name, details=details)


def refusal_text(request: PromptRequest) -> str:
    """Return the end of a retry's message; empty for first tries."""
    details = request.details
    if REASONS not in details:
        return ""
    return f"\n\nAn earlier answer was refused:\n\n{details[PREVIOUS]}\n\nWhat was wrong with it: {details[REASONS]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Generic[T]):
    """A question for a text to accept or refuse."""

    name: str
    """In a recipe, `[questions.NAME]`, and its stage."""

    title: str
    """Of its stage, in funnel and card."""

    prompt: Prompt

    read: Callable[[str | None], T | None]
    """What a response proposes; None if nothing."""

    accept: Callable[[Mapping[str, Any], T, Any], Mapping[str, Any] | str]
    """From row, proposal and the stage's tool to ``result``'s values, or why it is refused."""

    review: Callable[[Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], Any], Sequence[str | None]] | None = None
    """From a try's accepted rows and results, and the tool, to why each is refused, or None."""

    result: pl.Schema
    select: Callable[..., Selected]
    apply: Callable[..., dict[str, pl.DataFrame]] = lambda *_: {}
    """From the question, rows, proposals and `select`'s tables to the stage's tables."""

    each: int = 1
    """Proposals asked for by one request."""

    tries: int = 1
    nothing: str = "nothing was proposed"
    """The reason if a response proposes nothing."""

    version: int = 1
    """Changed if other rows would be asked about, or other proposals accepted."""

    table = "proposals"

    def is_readable(self, text: str | None) -> bool:
        """Return whether a response proposes something."""
        return self.read(text) is not None

    @property
    def number(self) -> int:
        """Return the max responses per request."""
        return self.each * self.tries

    def answers(
        self,
        rows: pl.DataFrame,
        requests: Sequence[Request],
        ask: Ask,
        _threshold: float | None = None,
        tool: Any = None,
    ) -> pl.DataFrame:
        """Ask and accept; return a row per proposal, with text and outcome."""
        subjects = rows.to_dicts()
        lines = [_Line(at, request) for at, request in enumerate(requests) if isinstance(request, str)]
        asked = [
            _Line(at, request, index)
            for at, request in enumerate(requests)
            if not isinstance(request, str)
            for index in range(self.each)
        ]
        for number in range(self.tries):
            due = [line for line in asked if not line.accepted and (number == 0 or line.text is not None)]
            texts = _texts(ask(list({line.next.id: line.next for line in due}.values()), 1 if number else self.each))
            for line in due:
                text = texts.get((line.next.id, 0 if number else line.index))
                if text is not None or number == 0:
                    line.text, line.tries = text, line.tries + 1
                    self._decide(line, subjects[line.at], tool)
            accepted = [line for line in due if line.accepted]
            if self.review is not None and accepted:
                whys = self.review([(subjects[line.at], line.result) for line in accepted], tool)
                for line, why in zip(accepted, whys, strict=True):
                    line.accepted, line.why = why is None, why
                    line.result = line.result if why is None else {}
        lines = sorted([*lines, *asked], key=lambda line: line.at)
        proposed = pl.DataFrame([line.row() for line in lines], schema={**_PROPOSED, **self.result}, orient="row")
        return pl.concat([rows[[line.at for line in lines]], proposed], how="horizontal")

    def _decide(self, line: _Line, subject: Mapping[str, Any], tool: Any) -> None:
        proposed = self.read(line.text)
        result = self.accept(subject, proposed, tool) if proposed is not None else self.nothing
        line.accepted = not isinstance(result, str)
        line.why, line.result = (result, {}) if isinstance(result, str) else (None, result)

    def notes(self, proposals: pl.DataFrame) -> dict[str, int]:
        """Count accepted texts, and refusals by reason up to a colon."""
        whys = proposals["why"].drop_nulls().str.split(":").list.first().value_counts().iter_rows()
        refused = {f"not, {why}": count for why, count in whys}
        return {"accepted": proposals.filter("accepted").height, **refused}


@dataclass(slots=True)
class _Line:
    """A proposal's row, request or why it has none, and outcome."""

    at: int
    request: Request
    index: int = 0
    tries: int = 0
    text: str | None = None
    accepted: bool = False
    why: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)

    @property
    def next(self) -> PromptRequest:
        """Return what is asked next."""
        assert not isinstance(self.request, str)
        if self.text is None or self.why is None:
            return self.request
        return refused_request(self.request, self.text, self.why)

    def row(self) -> dict[str, Any]:
        """Return the row of evidence."""
        proposed = {"index": self.index, "tries": self.tries, "text": self.text, "accepted": self.accepted}
        if isinstance(self.request, str):
            return {"question": None, **proposed, "why": self.request}
        return {"question": self.request.id, **proposed, "why": self.why, **self.result}


def _texts(attempts: pl.DataFrame) -> dict[tuple[str, int], str]:
    rows = attempts.select("problem", "index", "text").drop_nulls().iter_rows()
    return {(name, index): text for name, index, text in rows}
