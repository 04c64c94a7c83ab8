"""Ask models for translations (`TRANSLATION`), and whether they set the same task (`READING_VOTE`).

A refused translation is requested again with the reason. The reader's texts are between marks with a key that occurs in
none of them, so no text can end its own marks.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from curation.languages.names import NAMES
from curation.prompts.base import stored_prompt
from curation.questions.proposals import PREVIOUS, REASONS, Proposal
from curation.questions.votes import Ask, Vote
from curation.records import Domain, PromptRequest, problem_id
from curation.thinking import split_response
from curation.translation.invariants import VERSION, ProblemText, broken, is_in_words
from curation.translation.rows import SOURCE
from curation.verify.math_judge import Judge


def ask(request: PromptRequest) -> str:
    """Return the user message: language, problem, and a retry's refusal."""
    details = request.details
    blocks = [f"Translate this problem into {NAMES[details['target']]}.", f"The problem:\n\n{request.statement}"]
    if details.get("options"):
        blocks.append(f"The options:\n{details['options']}")
    if details.get("answer"):
        blocks.append(f"The answer, to be translated too:\n{details['answer']}")
    if details.get(REASONS):
        blocks.append(f"An earlier translation was refused:\n\n{details.get(PREVIOUS, '')}")
        blocks.append(f"What was wrong with it: {details[REASONS]}\nTranslate anew and avoid this.")
    return "\n\n".join(blocks)


TRANSLATE = stored_prompt("translation", ask)
READING = stored_prompt("readings")

_TAGS = {name: re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL) for name in ("translation", "answer", "options")}
_DIFFERENCE = re.compile(r"^\W*DIFFERENCE\W*:\W*(\S.*)$", re.MULTILINE)
_MAX_DIFFERENCE = 300

TRIES = 3
"""Max translations requested of a problem."""

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
    """The judge of answers (None for programs), and the reader's call."""

    judge: Judge | None
    ask: Ask


def translation_request(subject: Mapping[str, Any]) -> PromptRequest:
    """Return the request to translate a problem, identified by its message."""
    details = {"target": subject["target"]}
    if is_in_words(subject["answer"]):
        details["answer"] = subject["answer"]
    if subject["choices"]:
        details["options"] = "\n".join(subject["choices"])
    domain = Domain(subject["domain"])
    request = PromptRequest("", subject["statement"], domain, SOURCE, details)
    return replace(request, id=problem_id(ask(request), domain=domain))


def read_translation(text: str | None) -> ProblemText | None:
    """Return a response's translation, or None."""
    reply = split_response(text or "").answer or ""
    last = {name: (pattern.findall(reply) or [""])[-1] for name, pattern in _TAGS.items()}
    options = tuple(line.strip() for line in last["options"].splitlines() if line.strip())
    return ProblemText(last["translation"], last["answer"] or None, options) if last["translation"] else None


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
    texts = {"original": _shown(original, is_worded), "translation": _shown(translated, is_worded)}
    digest = hashlib.blake2b("\0".join(texts.values()).encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
    key = next(
        digest[:length] for length in range(8, 65) if not any(digest[:length] in text for text in texts.values())
    )
    statement = "\n\n".join(f"<{name} {key}>\n{text}\n</{name} {key}>" for name, text in texts.items())
    name = problem_id(statement, domain=original.domain)
    return PromptRequest(name, statement, original.domain, target, {"target": target})


def _shown(text: ProblemText, is_worded: bool) -> str:
    options = ["Options:\n" + "\n".join(text.choices)] if text.choices else []
    answer = [f"Answer: {text.answer}"] if is_worded and text.answer is not None else []
    return "\n\n".join([text.statement, *options, *answer])


READING_VOTE = Vote(
    name="readings", title="Translations read", prompt=READING, words=("same", "different"), votes=1, threshold=0.5
)


def read_difference(text: str | None) -> str | None:
    """Return the difference that a response names, or None."""
    response = split_response(text).answer if text is not None else None
    differences = _DIFFERENCE.findall(response) if response is not None else []
    difference = differences[-1].strip()[:_MAX_DIFFERENCE] if differences else None
    return None if difference is None or difference.rstrip(".").lower() == "none" else difference


def review(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], tools: Tools) -> list[str | None]:
    """Return the reader's reason against each translation, or None."""
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
    decided = READING_VOTE.decide(names, attempts, READING_VOTE.threshold, 1)["decision"]
    differences = {name: read_difference(text) for name, text in attempts.select("problem", "text").iter_rows()}
    return [_why(differences.get(name), decision) for name, decision in zip(names, decided, strict=True)]


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
    select=lambda subjects: (subjects, [translation_request(row) for row in subjects.iter_rows(named=True)]),
    tries=TRIES,
    nothing="no text: nothing is between <translation> and </translation>",
)

MADE_BY = f"{VERSION} {TRANSLATE.version} {READING.version}"
