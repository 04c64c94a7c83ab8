"""Write the demo's recorded answers again, after a change of a prompt: ``python -m tests.demo_data.recorded``.

    votes.jsonl           votes of an imaginary model on the demo's rows with a sign of trouble: asked, answers
    translations.jsonl    answers of an imaginary model that translates, then reads: asked, answer

The translations are hand-written, in `translations.jsonl` next to this file. One has another number at the first try,
which a check finds; one has another meaning at the first try, which the reader finds and answers with ``difference``;
one problem is never translated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import flows.demo
from curation.filters.statements.filtering import filter_statements
from curation.questions.doubtful_rows import DOUBTFUL_ROWS
from curation.records import PROBLEM, PromptRequest
from curation.translation.invariants import ProblemText, broken
from curation.translation.questions import ask, original_text, read_both, translation_request

HERE = Path(flows.demo.__file__).parent
VOTED = {
    "missing_figure": "INCOMPLETE",
    "truncated": "INCOMPLETE",
    "refers_elsewhere": "INCOMPLETE",
    "not_a_problem": "NOTHING",
    "hedged_answer": "REFERENCE",
    "guesswork": "SEVERAL",
}
"""By kind of a planted row, what is answered about it; every other row is usable."""


def _said(text: str) -> str:
    return f"<translation>\n{text}\n</translation>"


def recorded_translations() -> Iterator[dict[str, str]]:
    """Yield each message that the imaginary translator and reader gets, and its answer."""
    for row in _lines(Path(__file__).with_name("translations.jsonl")):
        target, statement, text = row["lang"], row["statement"], row["text"]
        subject = {"statement": statement, "target": target, "answer": None, "choices": None, "domain": "math"}
        subject |= {"unchanged": None}
        request, original = translation_request(subject), original_text(subject)
        first, difference = row.get("first", ""), row.get("difference", "")
        yield {"asked": ask(request), "answer": _said(first or text)}
        if first:
            reason = f"reader: {difference}"
            if difference:
                asked = read_both(original, ProblemText(first), target).statement
                yield {"asked": asked, "answer": f"DIFFERENCE: {difference}\nVERDICT: DIFFERENT"}
            else:
                reason = "; ".join(broken(original, ProblemText(first), target, None))
            yield {"asked": "\n".join((request.id, _said(first), reason)), "answer": _said(text)}
        asked = read_both(original, ProblemText(text), target).statement
        yield {"asked": asked, "answer": "DIFFERENCE: none\nVERDICT: SAME"}


def demo_rows(folder: Path = HERE) -> list[dict[str, Any]]:
    """Return the rows of both sources: source, row, question, reference, worked, options, lang, topic."""
    found = []
    for number, line in enumerate(_lines(folder / "problems.jsonl")):
        of_meta = {"lang": line["meta"]["lang"], "topic": line["meta"]["topic"]}
        found.append({**line, "source": "problems", "row": number, "question": line.get("question"), **of_meta})
    sheet = pl.read_csv(folder / "worksheet.csv", infer_schema=False)
    for number, line in enumerate(sheet.iter_rows(named=True)):
        worked, _, reference = line["worked_answer"].rpartition(" #### ")
        row = {"source": "worksheet", "row": number, "question": line["task"], "options": None}
        row |= {"worked": worked, "reference": reference if worked else None}
        found.append({**row, "lang": line["language"], "topic": line["subject"]})
    return found


def recorded_votes() -> Iterator[dict[str, Any]]:
    """Yield each question that the demo asks about a row, and three answers to it."""
    rows = demo_rows()
    planted = {(line["source"], line["row"]): line["kind"] for line in _lines(HERE / "planted.jsonl")}
    problems = pl.DataFrame(
        [
            dict.fromkeys(PROBLEM.names())
            | {"statement": row["question"], "answer": row["reference"], "choices": row["options"]}
            | {"lang": row["lang"], "row": at}
            for at, row in enumerate(rows)
        ],
        schema=PROBLEM,
    )
    kept, _ = filter_statements(problems)
    asked, requests = DOUBTFUL_ROWS.select(kept)
    seen: set[str] = set()
    for at, request in zip(asked["at"], requests, strict=True):
        assert isinstance(request, PromptRequest)
        row = rows[kept["row"][at]]
        word = VOTED.get(planted.get((row["source"], row["row"]), ""), "USABLE")
        if request.id not in seen:
            seen.add(request.id)
            answers = [{"text": f"{why} VERDICT: {word}"} for why in ("I checked the text.", "As it stands.", "So.")]
            yield {"asked": request.statement, "answers": answers}


def write(folder: Path) -> list[Path]:
    made = {folder / "votes.jsonl": recorded_votes(), folder / "translations.jsonl": recorded_translations()}
    for path, lines in made.items():
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return list(made)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


if __name__ == "__main__":
    write(HERE)
