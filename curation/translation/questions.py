"""Ask models for translations (`TRANSLATION`), and whether they set the same task (`READING_VOTE`).

A refused translation is asked for again with the reason, up to `TRIES` times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from curation.prompts.reading import READING, read_difference, reading_request
from curation.prompts.translating import TRANSLATE, ask, read_reply
from curation.questions.proposals import Proposal
from curation.questions.votes import UNREADABLE, Ask, Vote
from curation.records import Domain, PromptRequest, problem_id
from curation.translation.invariants import VERSION, ProblemText, broken, is_in_words
from curation.translation.selection import SOURCE
from curation.verify.math_judge import Judge

TRIES = 3
"""Translations asked for of one problem before it stays as it is."""

SUBJECTS = pl.Schema(
    {
        "at": pl.UInt32(),
        "id": pl.String(),
        "target": pl.String(),
        "statement": pl.String(),
        "answer": pl.String(),
        "choices": pl.List(pl.String()),
        "domain": pl.String(),
        "unchanged": pl.List(pl.String()),  # texts that must stay as they are
    }
)
"""The problems that are translated."""

RESULT = pl.Schema({"new_statement": pl.String(), "new_answer": pl.String(), "new_choices": pl.List(pl.String())})


@dataclass(slots=True)
class Tools:
    """The judge of answers (None for programs), the call to the reader, and its votes."""

    judge: Judge | None
    ask: Ask
    said: dict[str, Counter[str]] = field(default_factory=dict)


def translation_request(subject: Mapping[str, Any]) -> PromptRequest:
    """Return the request to translate a problem, under its message's id."""
    details = {"target": subject["target"]}
    if is_in_words(subject["answer"]):
        details["answer"] = subject["answer"]
    if subject["choices"]:
        details["options"] = "\n".join(subject["choices"])
    domain = Domain(subject["domain"])
    request = PromptRequest("", subject["statement"], domain, SOURCE, details)
    return replace(request, id=problem_id(ask(request), domain=domain))


def read_translation(text: str | None) -> ProblemText | None:
    """Return the translation in a response; None if it has none."""
    statement, answer, choices = read_reply(text or "")
    return ProblemText(statement, answer, choices) if statement is not None and statement.strip() else None


def original_text(subject: Mapping[str, Any]) -> ProblemText:
    """Return the text of one of `SUBJECTS`."""
    choices, unchanged = tuple(subject["choices"] or ()), tuple(subject["unchanged"] or ())
    return ProblemText(subject["statement"], subject["answer"], choices, Domain(subject["domain"]), unchanged)


def accept(subject: Mapping[str, Any], proposed: ProblemText, tools: Tools) -> Mapping[str, Any] | str:
    """Return the translated texts, or what they break."""
    original = original_text(subject)
    answer = proposed.answer if is_in_words(original.answer) else original.answer
    translated = replace(proposed, answer=answer)
    if reasons := broken(original, translated, subject["target"], tools.judge):
        return "; ".join(reasons)
    return {"new_statement": translated.statement, "new_answer": answer, "new_choices": list(proposed.choices) or None}


def read_both(original: ProblemText, translated: ProblemText, target: str) -> PromptRequest:
    """Return the request to compare a problem with its translation."""
    is_worded = is_in_words(original.answer)
    shown = _shown(original, is_worded), _shown(translated, is_worded)
    return reading_request(*shown, target, domain=original.domain.value)


def _shown(text: ProblemText, is_worded: bool) -> str:
    options = ["Options:\n" + "\n".join(text.choices)] if text.choices else []
    answer = [f"Answer: {text.answer}"] if is_worded and text.answer is not None else []
    return "\n\n".join([text.statement, *options, *answer])


READING_VOTE = Vote(
    name="readings", title="Translations read", prompt=READING, words=("same", "different"), votes=1, threshold=0.5
)


def review(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], tools: Tools) -> list[str | None]:
    """Return the reader's reason against each translation, if any."""
    requests = [
        read_both(
            original_text(subject),
            ProblemText(result["new_statement"], result["new_answer"], tuple(result["new_choices"] or ())),
            subject["target"],
        )
        for subject, result in pairs
    ]
    names = pl.Series([request.id for request in requests], dtype=pl.String)
    attempts = tools.ask(list({request.id: request for request in requests}.values()), READING_VOTE.votes)
    decided = READING_VOTE.decide(READING_VOTE.tally(names, attempts), READING_VOTE.threshold, 1)["decision"]
    told = {name: read_difference(text) for name, text in attempts.select("problem", "text").iter_rows()}
    for (subject, _), decision in zip(pairs, decided, strict=True):
        tools.said.setdefault(subject["id"], Counter()).update([decision or UNREADABLE])
    return [_why(told.get(name), decision) for name, decision in zip(names, decided, strict=True)]


def _why(difference: str | None, decision: str | None) -> str | None:
    if decision == "same":
        return None
    return f"reader: {difference or 'it does not ask the same'}" if decision else "reader without a vote"


TRANSLATION: Proposal[ProblemText] = Proposal(
    name="translation",
    title="Translation",
    prompt=TRANSLATE,
    read=read_translation,
    accept=accept,
    review=review,
    result=RESULT,
    select=lambda subjects: (subjects, [translation_request(one) for one in subjects.iter_rows(named=True)]),
    apply=lambda *_: {},
    tries=TRIES,
    nothing="no text: nothing is between <translation> and </translation>",
)

MADE_BY = f"{VERSION} {TRANSLATE.version} {READING.version}"
"""What a translation depends on apart from the models."""
