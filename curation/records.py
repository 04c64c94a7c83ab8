"""The types of Goldilocks and their tables: Problem → Attempt → Verdict → PassRate → Decision.

Invariants:
  - a problem's ``id`` depends only on its normalised content;
  - a dropped row keeps all columns of `PROBLEM`;
  - `Outcome.TIMEOUT` and `Outcome.BROKEN` are failures of the verifier, never wrong answers.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol, Self

import polars as pl

from curation.errors import ConfigError as ConfigError
from curation.errors import GoldilocksError as GoldilocksError
from curation.errors import PolicyError as PolicyError
from curation.errors import RequestRefused as RequestRefused
from curation.errors import SourceError as SourceError
from curation.errors import StoreError as StoreError
from curation.errors import VerifierError as VerifierError


class Domain(StrEnum):
    """A problem's kind, which selects its verifier."""

    MATH = "math"
    CODE = "code"


class Outcome(StrEnum):
    """The verdict on one attempt."""

    CORRECT = "correct"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"  # the response holds no final answer
    TIMEOUT = "timeout"  # the verifier ran past its limit and was killed
    BROKEN = "broken"  # the verifier itself failed


COUNTED_OUTCOMES = (Outcome.CORRECT, Outcome.WRONG, Outcome.NO_ANSWER)
"""Outcomes that pass rates count."""


class DropReason(StrEnum):
    """Why a row was dropped."""

    # sources
    BAD_ROW = "bad_row"  # set aside
    # statements: the format filter
    MISSING_STATEMENT = "missing_statement"
    MISSING_ANSWER = "missing_answer"
    MISSING_FIGURE = "missing_figure"
    PROOF = "proof"
    MULTI_PART = "multi_part"
    YES_NO = "yes_no"
    DEBRIS = "debris"
    TEXTUAL_ANSWER = "textual_answer"
    ANSWER_IN_STATEMENT = "answer_in_statement"
    WRONG_LANGUAGE = "wrong_language"
    OWN_RULE = "own_rule"
    UNUSABLE = "unusable"  # incomplete, asks nothing, or has a reference that cannot be compared
    MULTIPLE_CHOICE = "multiple_choice"  # no model rewrote it as an open question
    # references
    UNVERIFIABLE_ANSWER = "unverifiable_answer"
    UNPROVEN_REWRITING = "unproven_rewriting"  # without its layout it may be another answer
    VERIFIER_FAILED = "verifier_failed"
    # duplicates
    DUPLICATE = "duplicate"
    CONFLICTING_ANSWERS = "conflicting_answers"
    NEAR_DUPLICATE = "near_duplicate"
    # contamination
    CONTAMINATED = "contaminated"
    # premises
    FAULTY_PREMISES = "faulty_premises"
    # review
    REJECTED = "rejected"  # its label is wrong, or the problem is bad
    # difficulty
    RESERVED = "reserved"  # measured once its level has the right difficulty
    SAMPLING_FAILED = "sampling_failed"  # a later run tries it again
    TOO_FEW_ATTEMPTS = "too_few_attempts"
    SUSPECTED_WRONG_LABEL = "suspected_wrong_label"
    NEVER_SOLVED = "never_solved"
    TOO_EASY = "too_easy"
    # code: solutions and tests
    INTERACTIVE = "interactive"
    ASKS_FUNCTION = "asks_function"  # its tests are not calls
    NEEDS_FILES = "needs_files"  # or needs several source files
    NO_SOLUTION = "no_solution"
    TOO_FEW_TESTS = "too_few_tests"
    SEVERAL_OUTPUTS = "several_outputs"  # there is no checker
    # translation
    UNTRANSLATED = "untranslated"
    NO_VARIANT = "no_variant"
    # export
    OVER_QUOTA = "over_quota"


PROBLEM = pl.Schema(
    {
        "id": pl.String(),  # original statement and options, hashed
        "group": pl.String(),  # id of the original, shared by translations; keep a group in one split
        "domain": pl.String(),
        "statement": pl.String(),
        "answer": pl.String(),  # the reference answer, or null
        "choices": pl.List(pl.String()),  # options of a multiple-choice problem, if they were a separate field
        "solution": pl.String(),
        "lang": pl.String(),  # ISO 639-1
        "source": pl.String(),  # name in the recipe
        "row": pl.Int64(),  # position in the source, from 0
        "license": pl.String(),
        "weight": pl.Float64(),  # the source's mixing weight
        "raw_statement": pl.String(),  # before rewriting, or null
        "raw_answer": pl.String(),
        "meta": pl.String(),  # further columns of the source, as a JSON object
    }
)

DROPPED = pl.Schema({**PROBLEM, "stage": pl.String(), "reason": pl.String(), "evidence": pl.String()})

TEST = pl.Schema(
    {
        "problem": pl.String(),
        "index": pl.Int32(),  # position among the problem's tests
        "input": pl.String(),
        "output": pl.String(),  # expected output; null before solutions have voted on it
        "origin": pl.String(),  # part of the source, `mutation` or `model`
    }
)

SOLUTION = pl.Schema(
    {
        "problem": pl.String(),
        "index": pl.Int32(),  # position among the problem's solutions
        "lang": pl.String(),  # python or cpp; other languages are not run
        "code": pl.String(),
        "right": pl.Boolean(),  # accepted by the source; null if it has no label
        "label": pl.String(),  # the source's label: accepted, wrong_answer, …
    }
)

JUDGING = pl.Schema(
    {
        "problem": pl.String(),
        "time_limit_s": pl.Float64(),  # null: the recipe's default
        "memory_mb": pl.Int32(),
        "comparison": pl.String(),  # of outputs, as a JSON object; null: tokens
        "checker": pl.String(),  # source code, or null
        "checker_lang": pl.String(),
        "checker_kind": pl.String(),  # kattis, testlib or script
        "validator": pl.String(),  # input validators as a JSON list, or null
        "validator_lang": pl.String(),  # their languages, comma-separated
        "function": pl.String(),  # name of the function to write, or its tests as JSON; null for a program
        "starter": pl.String(),  # code that the solution completes
        "interactive": pl.Boolean(),
        "files": pl.Boolean(),  # reads or writes files
        "figures": pl.Boolean(),  # the statement has pictures
        "processes": pl.Boolean(),  # programs may start processes
    }
)

ATTEMPT = pl.Schema(
    {
        "problem": pl.String(),
        "policy": pl.String(),  # model@revision
        "prompt": pl.String(),  # version of the prompt
        "sampling": pl.String(),  # digest of the sampling parameters
        "index": pl.Int32(),  # 0 to n-1 within the problem
        "text": pl.String(),  # the whole response; null if only the answer was recorded
        "answer": pl.String(),  # a recorded final answer; null: read it from text
        "finish": pl.String(),  # stop, length, or null
        "tokens": pl.Int32(),
        "label": pl.Boolean(),  # correctness in its file; only compared with our verdict
        "token_ids": pl.List(pl.Int32()),  # the sampled tokens
        "logprobs": pl.List(pl.Float32()),  # their natural log-probabilities; both null unless requested
        "purpose": pl.String(),  # training or evaluation; this and the next four only in training runs
        "step": pl.Int32(),  # steps taken when it ended
        "version": pl.Int32(),  # version of the weights at its first token
        "newest_version": pl.Int32(),  # and at its last token
        "rollout_group": pl.Int64(),  # its group in training or evaluation
    }
)

VERDICT = pl.Schema(
    {
        "problem": pl.String(),
        "policy": pl.String(),
        "prompt": pl.String(),
        "sampling": pl.String(),
        "index": pl.Int32(),
        "verifier": pl.String(),  # name@version
        "reference": pl.String(),  # compared with the attempt
        "outcome": pl.String(),
        "answer": pl.String(),  # the final answer found in the attempt
        "answer_class": pl.Int32(),  # 0: the reference; 1, 2, … other answers; null: none
        "method": pl.String(),  # the tier that decided, or what failed
    }
)

PASS_RATE = pl.Schema(
    {
        "problem": pl.String(),
        "policy": pl.String(),
        "attempts": pl.Int32(),  # attempts that count, up to where sampling stopped
        "skipped": pl.Int32(),  # attempts that were not needed; null: stopped by an older rule
        "judged": pl.Int32(),  # correct + wrong + no_answer
        "correct": pl.Int32(),
        "wrong": pl.Int32(),
        "no_answer": pl.Int32(),
        "timeout": pl.Int32(),
        "broken": pl.Int32(),
        "pass_rate": pl.Float64(),  # correct / judged, or null
        "unbiased_pass_rate": pl.Float64(),  # free of the bias of early stopping
        "low": pl.Float64(),  # 95 % Wilson interval; failed verdicts count as wrong
        "high": pl.Float64(),  # its upper end; failed verdicts count as correct
        "top_wrong_answer": pl.String(),  # the most frequent answer that is not the reference
        "top_wrong_votes": pl.Int32(),
    }
)

DECISION = pl.Schema(
    {
        "problem": pl.String(),
        "stage": pl.String(),
        "keep": pl.Boolean(),
        "reason": pl.String(),  # a drop reason; null if kept
        "evidence": pl.String(),
        **{name: dtype for name, dtype in PASS_RATE.items() if name != "problem"},
    }
)


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A problem for a policy; ``details`` fill blanks of the prompt."""

    id: str
    statement: str
    domain: Domain
    lang: str
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """What attempts have in common.

    Example: ``AttemptKey("qwen3-8b@9c925d6", "think-1", "5f0c2ab19e7d")``
    """

    policy: str
    prompt: str
    sampling: str


@dataclass(frozen=True, slots=True)
class RolloutOrigin:
    """An attempt's place in a training run."""

    purpose: str
    step: int
    version: int
    newest_version: int
    rollout_group: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A policy's answer: a row of `ATTEMPT` without its key.

    ``text`` has thoughts in ``<think>`` tags. ``logprobs`` are natural logarithms under the sampling distribution.
    """

    text: str | None
    finish: str | None
    tokens: int | None
    answer: str | None = None
    label: bool | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    origin: RolloutOrigin | None = None


class Policy(Protocol):
    """Answers problems; an asynchronous context manager.

    Meant for ``in_flight`` concurrent calls; cancelling ``answer`` aborts its generation. Equal (problem, index) have
    equal seeds.

    Raises:
        PolicyError: it cannot answer.
    """

    key: AttemptKey
    in_flight: int

    @property
    def about(self) -> Mapping[str, Any]:
        """Return the sampling parameters, for the store."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return an attempt, or None if this index has none."""
        ...


_SPACE = re.compile(r"\s+")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "\u00ad": None, "\u200b": None, "\ufeff": None})


def normalise_text(text: str) -> str:
    """Return NFC with straight quotes, single spaces and no invisible characters."""
    if text.isascii():
        return " ".join(text.split())
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text.translate(_QUOTES))).strip()


def problem_id(statement: str, choices: Sequence[str] | None = None, domain: str = Domain.MATH) -> str:
    """Return 20 hexadecimal digits of BLAKE2b over the normalised problem without its reference."""
    fields = [domain, normalise_text(statement), *(normalise_text(choice) for choice in choices or ())]
    return hashlib.blake2b("\x1f".join(fields).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
