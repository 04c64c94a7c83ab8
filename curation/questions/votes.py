"""Questions that a model answers several times with one word each.

Invariants: unreadable responses are not votes; another threshold needs no new votes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curation.prompts.base import Prompt
from curation.records import DROPPED, Domain, DropReason, PromptRequest, problem_id
from curation.thinking import split_response

UNREADABLE = "unreadable"

Request = PromptRequest | str
"""A request, or why there is none."""

Selected = tuple[pl.DataFrame, list[Request]]
"""A shard's rows: a frame with ``at`` (index in the shard), ``id`` and evidence for people (``about``), and each
row's request. Rows may repeat.
"""

Ask = Callable[[Sequence[PromptRequest], int], pl.DataFrame]
"""Returns `ATTEMPT` rows, at most this number per request."""


def text_request(text: str, lang: str, domain: str = Domain.MATH) -> PromptRequest:
    """Return a request identified by its text, as in files of recorded votes."""
    return PromptRequest(problem_id(text, domain=domain), text, Domain(domain), lang)


def every_row(frame: pl.DataFrame) -> Selected:
    """Ask about every row, by its statement."""
    rows = frame.select("id").with_row_index("at")
    texts = frame.select("id", "statement", "domain", "lang").iter_rows()
    return rows, [PromptRequest(name, text, Domain(domain), lang) for name, text, domain, lang in texts]


def drop_rows(vote: Vote, frame: pl.DataFrame, votes: pl.DataFrame, *_tables: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Split a shard into ``kept`` and ``dropped`` by each row's first decision with a reason."""
    about = pl.format("{}, {}", "evidence", "about") if "about" in votes.columns else pl.col("evidence")
    reason = pl.col("decision").replace_strict({word: why.value for word, why in vote.reasons.items()}, default=None)
    faults = votes.select("at", stage=pl.lit(vote.name), reason=reason, evidence=about).drop_nulls("reason")
    first = faults.unique("at", keep="first", maintain_order=True)
    judged = frame.with_row_index("at").join(first, on="at", how="left", maintain_order="left")
    return {
        "kept": judged.filter(pl.col("reason").is_null()).select(frame.columns),
        "dropped": judged.filter(pl.col("reason").is_not_null()).select(DROPPED.names()),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A question answered by a line ``VERDICT: WORD``.

    Example: ``Vote(name="solvable", title="Solvable", prompt=Prompt("solvable@1", SYSTEM, text_of), words=("yes",
    "no"), reasons={"no": DropReason.UNUSABLE})``
    """

    name: str
    """Of its recipe table, `[questions.NAME]`, and its stage."""

    title: str
    """Of its stage, in funnel and card."""

    prompt: Prompt
    words: tuple[str, ...]
    """Possible votes; if `pooled`, all but the first count as one."""

    reasons: Mapping[str, DropReason] = field(default_factory=dict)
    """By word, the reason to drop a row."""

    votes: int = 3
    threshold: float = 0.6
    pooled: bool = True
    """Whether votes for different faults add up; else one word needs the threshold and a majority."""

    version: int = 1
    """Increase it if other rows would be asked about, or votes decide otherwise."""

    select: Callable[..., Selected] = every_row
    apply: Callable[..., dict[str, pl.DataFrame]] = drop_rows
    """From the question, rows, votes and `select`'s tables to the stage's tables."""

    table = "votes"

    def __post_init__(self) -> None:
        if len(self.words) < 2 or not all(re.fullmatch("[a-z]+", word) for word in self.words):
            raise ValueError(f"words = {self.words}: give two or more lower-case words; the first means no fault")
        if unknown := set(self.reasons) - set(self.words[1:]):
            raise ValueError(f"reasons: {', '.join(sorted(unknown))} is not in words[1:] = {self.words[1:]}")

    def read(self, text: str | None) -> str:
        """Return a response's last verdict, or `UNREADABLE`.

        Two words after the last ``VERDICT``, or unclosed thoughts, are unreadable.
        """
        answer = split_response(text).answer if text is not None else None
        verdicts = list(re.finditer(rf"(?i)\bVERDICT\W{{0,6}}({'|'.join(self.words)})\b", answer or ""))
        if answer is None or not verdicts:
            return UNREADABLE
        line = answer[verdicts[-1].start() :].partition("\n")[0]
        words = {word for word in re.findall(r"[a-z]+", line.lower()) if word in self.words}
        return verdicts[-1][1].lower() if len(words) == 1 else UNREADABLE

    def is_readable(self, text: str | None) -> bool:
        """Return whether a response is a vote."""
        return self.read(text) != UNREADABLE

    @property
    def number(self) -> int:
        """Return the responses per request."""
        return self.votes

    def answers(
        self,
        rows: pl.DataFrame,
        requests: Sequence[Request],
        ask: Ask,
        threshold: float | None = None,
        _tool: Any = None,
    ) -> pl.DataFrame:
        """Ask and count; return rows with `decide`'s columns and ``why`` (null if asked)."""
        asked = {request.id: request for request in requests if not isinstance(request, str)}
        names = pl.Series([None if isinstance(request, str) else request.id for request in requests], dtype=pl.String)
        whys = pl.Series("why", [request if isinstance(request, str) else None for request in requests], pl.String)
        attempts = ask(list(asked.values()), self.votes)
        decided = self.decide(names, attempts, threshold or self.threshold, self.votes // 2 + 1)
        return pl.concat([rows, decided, whys.to_frame()], how="horizontal")

    def decide(self, questions: pl.Series, attempts: pl.DataFrame, threshold: float, min_readable: int) -> pl.DataFrame:
        """Return each question's id, votes per word, unreadable and readable ones, decision or null, and evidence.

        Args:
            questions: ids of requests, or null.
            threshold: deciding share of readable votes, in (0, 1].
        """
        votes = attempts.select(question="problem", vote=pl.Series(map(self.read, attempts["text"]), dtype=pl.String))
        asked = questions.alias("question").to_frame().with_row_index("at")
        counts = [(pl.col("vote") == word).sum().cast(pl.Int32).alias(word) for word in (*self.words, UNREADABLE)]
        tallies = asked.join(votes, on="question", how="left").group_by("at", "question").agg(counts).sort("at")
        tallies = tallies.drop("at").with_columns(readable=pl.sum_horizontal(self.words).cast(pl.Int32))
        enough = pl.col("readable") >= max(1, min_readable)
        candidates = self.words[1:] if self.pooled else self.words
        highest = pl.max_horizontal(candidates)
        main = pl.coalesce(pl.when((pl.col(word) == highest) & (highest > 0)).then(pl.lit(word)) for word in candidates)
        count = pl.sum_horizontal(candidates) if self.pooled else highest
        reaches = enough & (count > 0) & (count >= threshold * pl.col("readable") - 1e-9)
        otherwise = pl.when(enough).then(pl.lit(self.words[0])) if self.pooled else pl.lit(None, pl.String)
        if not self.pooled:
            reaches &= 2 * count > pl.col("readable")
        name_faults = self.pooled and len(candidates) > 1
        what = "{} of {} votes name a fault, most often: {}" if name_faults else "{} of {} votes: {}"
        counted = pl.format(what, count, "readable", main.fill_null("none"))
        few = pl.format("only {} readable votes", "readable")
        return tallies.with_columns(
            decision=pl.when(reaches).then(main).otherwise(otherwise),
            evidence=pl.when(enough).then(counted).otherwise(few),
        )

    def notes(self, votes: pl.DataFrame) -> dict[str, int]:
        """Return a shard's counts by decision."""
        asked = votes.filter(pl.col("question").is_not_null())
        notes = {f"decided {word}": asked.filter(decision=word).height for word in self.words}
        return {**notes, "uncertain": asked["decision"].null_count()}
