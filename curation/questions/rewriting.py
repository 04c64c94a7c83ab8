"""Rewrite multiple choice to open questions by a model.

A rewriting is accepted only if the model's own answer to it is the right option.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.config import StatementSettings
from curation.filters.multiple_choice import sound_option, strip_markup
from curation.filters.statements import filtering as statements
from curation.languages.vocabulary import one_of
from curation.options import split_options
from curation.prompts.base import stored_prompt
from curation.questions.proposals import Proposal, refusal_text
from curation.questions.votes import Request, Selected
from curation.records import COUNTED_OUTCOMES, PROBLEM, Domain, Outcome, PromptRequest
from curation.thinking import split_response
from curation.verify.math_judge import Judge, JudgeTask, Response, Verdict


def _user(request: PromptRequest) -> str:
    return (
        f"The problem:\n\n{request.statement}\n\nThe options:\n{request.details['options']}\n\n"
        f"The right one:\n{request.details['answer']}{refusal_text(request)}"
    )


PROMPT = stored_prompt("rewriting", _user)

TWO_REFERENCES = "its copies name different options"
NOT_RESOLVED = "no option is named as the right one"

_PROBLEM = re.compile(r"<problem>(.*?)</problem>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MARKED = re.compile(rf"(?i){one_of(lambda lang: lang.choices.marks_an_answer)}|\\boxed")
_POINTS = re.compile(rf"(?i){one_of(lambda lang: lang.choices.names_options)}")
_ASKS = re.compile(rf"(?i)[?？]|____|{one_of(lambda lang: lang.choices.asks)}")


@dataclass(frozen=True, slots=True)
class ProposedRewriting:
    """A new statement, and the model's own answer after it."""

    statement: str
    answer: str


def read_rewriting(text: str | None) -> ProposedRewriting | None:
    """Return a response's last rewriting after its thoughts, or None."""
    response = split_response(text).answer if text is not None else None
    if response is None:
        return None
    matches = list(_PROBLEM.finditer(response))
    if not matches or matches[-1][1].strip().strip(".").upper() in ("", "NONE"):
        return None
    return ProposedRewriting(matches[-1][1].strip(), response[matches[-1].end() :].strip())


def refusal(question: str, options: Sequence[str], index: int, statement: str) -> str | None:
    """Return what is lost, changed or given away in a rewriting, or None."""
    if split_options(statement) is not None:
        return "the rewriting still has labelled options"
    if not _ASKS.search(statement):
        return "the rewriting asks nothing"
    if marked := _MARKED.search(statement):
        return f"the rewriting marks the answer: {marked[0]}"
    listed = all(strip_markup(option) in strip_markup(statement) for option in options)
    if not listed and (points := _POINTS.search(statement)):
        return f"the rewriting points at options that are gone: {points[0]}"
    answer = sound_option(options[index])
    gives_away = strip_markup(answer) in strip_markup(statement) and strip_markup(answer) not in strip_markup(question)
    if gives_away and not listed:
        return f"the rewriting gives the answer away: {answer}"
    numbers_before, numbers_after = _numbers(question), _numbers(statement)
    with_options = numbers_before + sum((_numbers(option) for option in options), Counter())
    if numbers_after not in (numbers_before, with_options):
        return f"the numbers changed: {_list_numbers(numbers_before)} became {_list_numbers(numbers_after)}"
    if main_script(statement) != main_script(question):
        return f"the language changed: {main_script(question)} became {main_script(statement)}"
    return None


def _numbers(text: str) -> Counter[str]:
    return Counter(number.replace(",", "") for number in _NUMBER.findall(unicodedata.normalize("NFKC", text)))


def _list_numbers(numbers: Counter[str]) -> str:
    return " ".join(sorted(numbers.elements())) or "none"


def main_script(text: str) -> str:
    """Return the script of most letters outside formulas."""
    plain = re.sub(r"\$[^$]*\$|\\[A-Za-z]+", " ", text)
    names = (unicodedata.name(letter, "").split(" ")[0] for letter in plain if letter.isalpha())
    counts = Counter("CJK" if name in ("CJK", "HIRAGANA", "KATAKANA") else name for name in names)
    return counts.most_common(1)[0][0] if counts else "none"


def ambiguous_ids(problems: pl.DataFrame) -> frozenset[str]:
    """Return ids whose copies have different references, which no model may settle.

    Args:
        problems: all rows.
    """
    references = pl.col("answer").str.strip_chars().str.to_uppercase().n_unique()
    return frozenset(problems.group_by("id").agg(references).filter(pl.col("answer") > 1)["id"])


def choices_to_rewrite(problems: pl.DataFrame, settings: StatementSettings, ambiguous: frozenset[str]) -> Selected:
    """Select the multiple choice of a shard."""
    choices = {} if "multiple_choice" in settings.disabled else statements.find_choices(problems)
    positions = sorted(choices)
    rows = problems.with_row_index("at")[positions].select("at", "id", "source", "row", "lang")
    requests: list[Request] = []
    parsed: list[tuple[str, list[str], int] | tuple[None, None, None]] = []
    for choice, name, lang in zip(map(choices.get, positions), rows["id"], rows["lang"], strict=True):
        if choice is None or isinstance(choice, str):
            requests.append(NOT_RESOLVED)
            parsed.append((None, None, None))
            continue
        details = {"options": "\n".join(choice.options), "answer": choice.options[choice.index]}
        request = PromptRequest(name, choice.question, Domain.MATH, lang, details)
        requests.append(TWO_REFERENCES if name in ambiguous else request)
        parsed.append((choice.question, list(choice.options), choice.index))
    schema = {"choice": pl.String(), "options": pl.List(pl.String()), "right": pl.Int32()}
    return rows.hstack(pl.DataFrame(parsed, schema, orient="row")), requests


def own_verdict(name: str, reference: str, lang: str, proposed: ProposedRewriting, judge: Judge) -> Verdict:
    """Judge the writer's answer to its own problem."""
    task = JudgeTask(name, reference, lang, (Response(proposed.answer, None),), statement=proposed.statement)
    return next(iter(judge.judge([task]))).verdicts[0]


def accept(row: Mapping[str, Any], rewriting: ProposedRewriting, judge: Judge) -> Mapping[str, Any] | str:
    """Return the open question's statement and answer, or why it is refused."""
    right = row["options"][row["right"]]
    if (why := refusal(row["choice"], row["options"], row["right"], rewriting.statement)) is not None:
        return why
    verdict = own_verdict(row["id"], right, row["lang"], rewriting, judge)
    if verdict.outcome not in COUNTED_OUTCOMES:  # the verifier's own failure is no verdict on the model
        return f"the verifier failed: {verdict.method}"
    if verdict.outcome is not Outcome.CORRECT:
        return "the model's answer to its rewriting is not the right option"
    return {"statement": rewriting.statement, "answer": sound_option(right)}


def open_rows(
    _question: Proposal[ProposedRewriting],
    problems: pl.DataFrame,
    proposals: pl.DataFrame,
    _settings: StatementSettings,
    _ambiguous: frozenset[str],
) -> dict[str, pl.DataFrame]:
    """Return rows as ``kept`` with accepted rewritings; raw_* keep the originals."""
    accepted = proposals.filter("accepted").unique("at", keep="first", maintain_order=True)
    opened = accepted.select("at", new="statement", correct="answer")
    joined = problems.with_row_index("at").join(opened, on="at", how="left", maintain_order="left")
    new = pl.col("new").is_not_null()
    changed = joined.with_columns(
        raw_statement=pl.when(new).then(pl.coalesce("raw_statement", "statement")).otherwise("raw_statement"),
        raw_answer=pl.when(new).then(pl.coalesce("raw_answer", "answer")).otherwise("raw_answer"),
        statement=pl.coalesce("new", "statement"),
        answer=pl.coalesce("correct", "answer"),
        choices=pl.when(~new).then("choices"),
    )
    return {"kept": changed.select(PROBLEM.names())}


REWRITING = Proposal(
    name="rewriting",
    title="Rewriting by a model",
    prompt=PROMPT,
    read=read_rewriting,
    accept=accept,
    result=pl.Schema({"statement": pl.String(), "answer": pl.String()}),
    select=choices_to_rewrite,
    apply=open_rows,
    tries=2,
    nothing="no rewriting",
)
