"""Make the demo's data files: ``python -m tests.demo_data.make_data [--out FOLDER]``.

    problems.jsonl          the first source: uid, question, reference, worked, options, meta {topic, level, lang}
    worksheet.csv           the second source: no, task, worked_answer (``… #### 56``), subject, grade, language
    attempts_weak.jsonl     16 recorded attempts of an imaginary weak model at every well-formed problem
    attempts_strong.jsonl   the same of a strong one: question, options, attempts [{text, model, correct}]
    planted.jsonl           what was planted where: source, row, uid, question, kind, expected, stage, note; and
                            stage1_alone, what the weak model alone would have said
    translations.jsonl      recorded answers of an imaginary model that translates, then reads: asked, answer
    benchmark.jsonl         an imaginary benchmark, which contaminates some rows: id, problem, answer

The problems are made by this project from its own templates; the planted texts are hand-written for it. The attempts
were not sampled from any language model: they are drawn, right or wrong, with probabilities that fall with the level.

Invariants: the same bytes on every machine and Python version (seeds are fixed, draws are `Dice`'s); every planted
row is listed in planted.jsonl by source and row number; every problem that should survive the format filter has
attempts, except those planted to have too few.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import flows.demo
from curation.records import DropReason, problem_id
from tests.demo_data.defects import defective_rows
from tests.demo_data.hazards import (
    choice_rows,
    clutter_rows,
    conflict_rows,
    control_rows,
    difficulty_rows,
    duplicate_rows,
    wrong_label_rows,
)
from tests.demo_data.items import LANGS, Dice
from tests.demo_data.overlaps import benchmark_lines, contaminated_rows, near_duplicate_rows
from tests.demo_data.responses import Plan, record
from tests.demo_data.rows import Planted, Row, by_level, row_of
from tests.demo_data.supply import Supply
from tests.demo_data.templates import ENGLISH
from tests.demo_data.translations import recorded_translations
from tests.demo_data.votes import recorded_votes

HERE = Path(flows.demo.__file__).parent
SOURCE_ROWS, SOURCE_SHEET = "problems", "worksheet"
FILES = (
    "problems.jsonl",
    "worksheet.csv",
    "attempts_weak.jsonl",
    "attempts_strong.jsonl",
    "planted.jsonl",
    "benchmark.jsonl",
    "translations.jsonl",
    "votes.jsonl",
)

SEED_PROBLEMS, SEED_ORDER, SEED_WEAK, SEED_STRONG = 2506, 10910, 16, 61
PLAIN_ENGLISH, PLAIN_FOREIGN, PLAIN_SHEET = 120, 7, 45


def demo_rows() -> tuple[list[Row], list[Row]]:
    """Return the rows of problems.jsonl and of worksheet.csv, in order."""
    supply = Supply(SEED_PROBLEMS)
    rows = defective_rows()
    for row in rows:
        supply.reserve(row.question or "")
    for make in (
        control_rows, choice_rows, clutter_rows, duplicate_rows, conflict_rows, difficulty_rows, wrong_label_rows,
        near_duplicate_rows,
    ):  # fmt: skip
        rows += make(supply)
    rows += contaminated_rows()
    for number in range(PLAIN_ENGLISH):
        item = supply.item((ENGLISH[number % len(ENGLISH)],))
        rows.append(row_of(item, by_level(supply.dice, item)))
    for lang in LANGS[1:]:
        for which in range(PLAIN_FOREIGN):
            item = supply.foreign(lang, which)
            rows.append(row_of(item, by_level(supply.dice, item)))
    sheet = _sheet_rows(supply, rows)
    order = Dice(SEED_ORDER)
    return _mixed(order, rows), _mixed(order, sheet)


def _sheet_rows(supply: Supply, rows: Sequence[Row]) -> list[Row]:
    """Return the worksheet: well-formed problems, six copies of the first source's, and five rows without an answer."""
    sheet: list[Row] = []
    for number in range(PLAIN_SHEET):
        item = supply.item((ENGLISH[number % len(ENGLISH)],))
        sheet.append(row_of(item, by_level(supply.dice, item)))
    plain = [row for row in rows if row.planted is None and row.pair is None]
    for number in range(6):
        planted = Planted("duplicate", DropReason.DUPLICATE, "exact_dedup", "copy in another source")
        sheet.append(replace(plain[19 * number], planted=planted))
    for _ in range(5):
        item = supply.item()
        planted = Planted("missing_answer", DropReason.MISSING_ANSWER, "statements", "no #### in the worked answer")
        sheet.append(replace(row_of(item, None, planted), reference=None, worked="to be done in class"))
    return sheet


def _mixed(order: Dice, rows: Sequence[Row]) -> list[Row]:
    """Return the rows in a random order in which the two of a pair keep theirs."""
    mixed = order.shuffled(rows)
    places: dict[str, list[int]] = {}
    for place, row in enumerate(mixed):
        if row.pair is not None:
            places.setdefault(row.pair, []).append(place)
    for row in rows:
        if row.pair is not None:
            mixed[places[row.pair].pop(0)] = row
    return mixed


def problem_line(row: Row, number: int) -> dict[str, Any]:
    """Return a row as it stands in problems.jsonl. Every fourth row without a statement lacks the key altogether."""
    line: dict[str, Any] = {
        "uid": f"p{number:04d}",
        "question": row.question,
        "reference": row.reference,
        "worked": row.worked,
        "options": list(row.options) if row.options else None,
        "meta": {"topic": row.topic, "level": row.level, "lang": row.lang},
    }
    if row.question is None and number % 2:
        del line["question"]
    return line


def sheet_text(rows: Sequence[Row]) -> str:
    """Return the worksheet as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("no", "task", "worked_answer", "subject", "grade", "language"))
    for number, row in enumerate(rows, start=1):
        worked = f"{row.worked} #### {row.reference}" if row.reference is not None else row.worked
        writer.writerow((number, row.question, worked, row.topic, row.level, row.lang))
    return out.getvalue()


def attempt_lines(rows: Iterable[Row], model: str, seed: int) -> list[dict[str, Any]]:
    """Return the recorded attempts of one model, one line per distinct problem."""
    dice = Dice(seed)
    names: set[str] = set()  # looked up, never iterated
    lines: list[dict[str, Any]] = []
    for row in rows:
        if row.answering is None or row.question is None:
            continue
        name = problem_id(row.question, row.options)
        plan: Plan = row.answering.weak if model == "weak" else row.answering.strong
        if name in names or plan.attempts == 0:
            continue
        names.add(name)
        attempts = record(dice, row.answering.item, f"demo-{model}", plan, row.answering.wrong_label)
        options = list(row.options) if row.options else None
        lines.append({"question": row.question, "options": options, "attempts": attempts})
    return lines


def planted_lines(source: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the ground truth of one source."""
    return [
        {
            "source": source,
            "row": number,
            "uid": f"p{number:04d}" if source == SOURCE_ROWS else str(number + 1),
            "question": row.question,
            "kind": row.planted.kind,
            "expected": str(row.planted.expected),
            "stage": row.planted.stage,
            "stage1_alone": str(row.planted.stage1_alone) if row.planted.stage1_alone else None,
            "note": row.planted.note,
        }
        for number, row in enumerate(rows)
        if row.planted is not None
    ]


def _jsonl(lines: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def write_demo(folder: Path) -> list[Path]:
    """Write the files into the folder and return their paths."""
    rows, sheet = demo_rows()
    both = [*rows, *sheet]
    texts = (
        _jsonl(problem_line(row, number) for number, row in enumerate(rows)),
        sheet_text(sheet),
        _jsonl(attempt_lines(both, "weak", SEED_WEAK)),
        _jsonl(attempt_lines(both, "strong", SEED_STRONG)),
        _jsonl([*planted_lines(SOURCE_ROWS, rows), *planted_lines(SOURCE_SHEET, sheet)]),
        _jsonl(benchmark_lines()),
        _jsonl(recorded_translations()),
        _jsonl(recorded_votes(both)),
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in FILES]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode("utf-8"))
    return paths


def main() -> None:
    """Write the files and print their sizes."""
    parser = argparse.ArgumentParser(description="Make the demo's data files again.")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to; the shipped files where absent")
    for path in write_demo(parser.parse_args().out):
        content = path.read_bytes()
        print(f"{path.name:24} {content.count(10):5} lines  {len(content):9,} bytes")


if __name__ == "__main__":
    main()
