"""A model's texts, accepted or refused; each retry is a stored request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import polars as pl

from curation.prompts.base import Prompt
from curation.questions.votes import Ask, Request, Selected
from curation.records import DROPPED, DropReason, PromptRequest, problem_id

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
    """Raise it if other rows would be asked about, or other proposals accepted."""

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
        lines = [
            _Line(at, index, request, why=request if isinstance(request, str) else None)
            for at, request in enumerate(requests)
            for index in range(1 if isinstance(request, str) else self.each)
        ]
        due = {line: line.asked for line in lines if not isinstance(line.asked, str)}
        for number in range(self.tries):
            attempts = ask(list({request.id: request for request in due.values()}.values()), 1 if number else self.each)
            answered = attempts.select("problem", "index", "text").drop_nulls().iter_rows()
            texts = {(name, index): text for name, index, text in answered}
            for line, request in due.items():
                text = texts.get((request.id, 0 if number else line.index))
                if text is not None or number == 0:
                    line.text, line.tries = text, line.tries + 1
                    proposed = self.read(text)
                    line.decide(self.nothing if proposed is None else self.accept(subjects[line.at], proposed, tool))
            if self.review is not None and (accepted := [line for line in due if line.accepted]):
                whys = self.review([(subjects[line.at], line.result) for line in accepted], tool)
                for line, why in zip(accepted, whys, strict=True):
                    line.decide(line.result if why is None else why)
            due = {line: line.retry() for line in due if line.text is not None and not line.accepted}
        proposed_rows = pl.DataFrame([line.row() for line in lines], {**_PROPOSED, **self.result}, orient="row")
        return pl.concat([rows[[line.at for line in lines]], proposed_rows], how="horizontal")

    def notes(self, proposals: pl.DataFrame) -> dict[str, int]:
        """Count accepted texts, and refusals by reason up to a colon."""
        whys = proposals["why"].drop_nulls().str.split(":").list.first().value_counts().iter_rows()
        refused = {f"not, {why}": count for why, count in whys}
        return {"accepted": proposals.filter("accepted").height, **refused}


def refused_rows(problems: pl.DataFrame, proposals: pl.DataFrame, stage: str, reason: DropReason) -> pl.DataFrame:
    """Return `DROPPED` rows of problems whose proposal was refused; they stay in the set."""
    refused = proposals.filter(~pl.col("accepted"))
    rows = problems[refused["at"].to_list()].with_columns(
        stage=pl.lit(stage), reason=pl.lit(reason.value), evidence=refused["why"]
    )
    return rows.select(DROPPED.names())


def with_additions(problems: pl.DataFrame, additions: pl.DataFrame, original: str) -> pl.DataFrame:
    """Return each problem followed by the rows made from it, which name it in the column ``original``."""
    positions = problems.select("id").with_row_index("position").unique("id", keep="first", maintain_order=True)
    new = additions.join(positions, left_on=original, right_on="id", how="inner", maintain_order="left")
    rows = pl.concat([problems.with_row_index("position"), new], how="diagonal")
    return rows.sort("position", maintain_order=True).drop("position")


@dataclass(slots=True, eq=False)
class _Line:
    """A proposal's row, request or why it has none, and outcome."""

    at: int
    index: int
    asked: Request
    tries: int = 0
    text: str | None = None
    why: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Return whether the last text is accepted."""
        return self.tries > 0 and self.why is None

    def decide(self, result: Mapping[str, Any] | str) -> None:
        """Note a text's result, or why it is refused."""
        self.why, self.result = (result, {}) if isinstance(result, str) else (None, result)

    def retry(self) -> PromptRequest:
        """Return the request after a refusal, under its own id."""
        assert not isinstance(self.asked, str)
        previous, reasons = self.text or "", self.why or ""
        name = problem_id("\n".join((self.asked.id, previous, reasons)), domain=self.asked.domain)
        details = {**self.asked.details, PREVIOUS: previous, REASONS: reasons}
        return replace(self.asked, id=name, details=details)

    def row(self) -> dict[str, Any]:
        """Return the row of evidence."""
        question = None if isinstance(self.asked, str) else self.asked.id
        proposed = {"index": self.index, "tries": self.tries, "text": self.text, "accepted": self.accepted}
        return {"question": question, **proposed, "why": self.why, **self.result}
