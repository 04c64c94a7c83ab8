"""The JSON record by which trainers judge a row.

    {"goldilocks": 1, "id": "5f…", "domain": "math", "lang": "en", "statement": "What is …?", "answer": "42"}
    {"goldilocks": 1, "id": "9c…", "domain": "code", "lang": "en", "statement": "…", "program": {"tests": […], …}}

Optional: ``letter`` of a former multiple choice, ``accepted`` answers, ``thinking``, ``response_format``, ``judges``, a
made row's ``scorer``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any

from curation.options import option_letter
from curation.records import Domain, SourceError
from curation.response_formats import ANY, checked_format
from curation.thinking import OPEN, ThinkingTags
from curation.verify.generator_scores import scorer_of

if TYPE_CHECKING:
    from curation.prompts.asked import Asked
    from curation.verify.programs.problem import CodeProblem

VERSION = 1
"""The schema's version; no other is read."""

MARK = "goldilocks"


def record_of(row: Mapping[str, Any], program: CodeProblem | None, asked: Asked | None = None) -> str:
    """Return a curated row's record.

    Args:
        program: None for math.
        asked: how the set was asked.
    """
    from curation.verify.programs.files import row_of_problem

    fields = {name: row[name] for name in ("id", "domain", "lang", "statement")}
    how: dict[str, Any] = {"program": row_of_problem(program)} if program is not None else {"answer": row["answer"]}
    if program is None and (letter := option_letter(row.get("raw_answer"), row["answer"] or "")) is not None:
        how["letter"] = letter
    if program is None and row.get("accepted"):
        how["accepted"] = list(row["accepted"])
    if (scorer := row.get("scorer") or scorer_of(row.get("meta"))) is not None:
        how["scorer"] = scorer
    if asked is not None and asked.thinking != OPEN:
        how["thinking"] = asked.thinking
    if asked is not None and asked.response_format != ANY:
        how["response_format"] = asked.response_format
    if asked is not None and asked.judges and program is None:
        how["judges"] = list(asked.judges)
    return json.dumps({MARK: VERSION, **fields, **how}, ensure_ascii=False)


def read_record(record: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record from JSON or an object.

    Raises:
        SourceError: it is invalid, or of another version.
    """
    try:
        table = json.loads(record) if isinstance(record, str) else record
        version, domain = table[MARK], Domain(table["domain"])
        needed: tuple[str, Any] = ("program", dict) if domain is Domain.CODE else ("answer", str)
        for name, kind in (
            needed,
            ("id", str | int),
            *((name, str | None) for name in ("lang", "statement", "letter", "scorer")),
        ):
            if not isinstance(table.get(name), kind):
                raise TypeError(f"{name} is {brief(table.get(name))}")
        for name in ("accepted", "judges"):
            texts = table.get(name, [])
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise TypeError(f"{name} is {brief(texts)}")
        ThinkingTags.of(table.get("thinking", OPEN))
        checked_format(table.get("response_format", ANY))
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"this is no record of Goldilocks ({type(error).__name__}: {error}; it begins "
            f"{str(record)[:60]!r}); export the set again, and hand the column `goldilocks` on as it is."
        ) from error
    if version != VERSION:
        raise SourceError(
            f"the record has version {version}, and this Goldilocks reads {VERSION}; export the set again, or "
            "install the version that exported it."
        )
    return table
