"""Read a curated set, and write it in a format."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import polars as pl

from curation.prompts.asked import Asked, read_asked
from curation.prompts.solving import FENCE
from curation.publish.export_formats.instructions import instructions
from curation.publish.export_formats.modules import modules_beside
from curation.publish.export_formats.needs import ANYTHING, CARRIES, Need, needs_of
from curation.publish.export_formats.rows import FORMATS, MEASURED, TYPES, ExportedProblem, Row, as_json, tests_of
from curation.records import Domain, PromptRequest, SourceError
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import write_scanned
from curation.storage.stages import atomic_replace, atomic_write, write_parquet
from curation.verify.programs.problem import CodeLang, CodeProblem
from curation.verify.programs.tables import set_problems

NEEDED = ("id", "group", "domain", "statement", "answer", "lang", "source", *MEASURED)
"""Columns of a curated set that formats read."""

PROVED_AS = "verl"
"""The format that proves unexported sets; it carries every problem."""

ROWS_AT_ONCE = 10_000
"""Rows held as objects."""

LINES = frozenset({"art", "nemo-gym", "nemo-rl", "openrlhf", "roll", "slime", "tinker"})
ON_DISK = frozenset({"areal"})
"""Formats written as a folder that `datasets` loads."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The written files, counts left out by need, and failures by id."""

    file: Path
    rows: int
    system_prompt: Path | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


RowCheck = Callable[[str, Sequence[tuple[ExportedProblem, Row]]], Sequence[str | None]]
"""Proves rows of a format; returns each row's failure or None (`curation.scoring.checking`)."""

CHECKED_AT_ONCE = 200
"""Rows that are proved together."""


def export_set(curated: Path, form: str, out: Path, check: RowCheck | None = None) -> ExportResult:
    """Write a curated set for another trainer, with a README: ``out/train.parquet``, ``train.jsonl`` or a folder.

    Args:
        check: rows that fail it are left out.

    Raises:
        SourceError: unknown format, no set, or a problem that the format cannot carry.
    """
    if form not in FORMATS:
        raise SourceError(f"format {form!r} is not known; known are {', '.join(FORMATS)}.")
    left_out: Counter[str] = Counter()
    failed: dict[str, str] = {}
    asked = read_asked(curated)
    if form == "nemo-rl" and asked.prompt.examples:
        raise SourceError(
            f"{curated}: its problems were asked with {len(asked.prompt.examples)} worked examples before them, and a "
            "row of nemo-rl holds one message; take another format."
        )
    domains, count, carried = set[str](), 0, CARRIES.get(form, ANYTHING)

    def rows() -> Iterator[tuple[ExportedProblem, Row]]:
        nonlocal count
        for problem in _problems(curated):
            count += 1
            domains.add(str(problem.row["domain"]))
            unmet_needs = needs_of(problem.program) - carried if problem.program is not None else set()
            if unmet_needs:
                left_out[next(need for need in Need if need in unmet_needs).value] += 1
            else:
                yield problem, FORMATS[form](problem)

    made = _proved(rows(), form, check, failed)
    if (first := next(made, None)) is None:
        reasons = left_out + Counter(failed.values())
        why = ", ".join(f"{reason} ({number})" for reason, number in reasons.items())
        raise SourceError(f"{curated}: {form} can carry none of its {count} problems: {why}.")
    file = _write(chain([first], made), form, out)
    license = card_license(curated)
    readme = instructions(form, curated.absolute().parent.name, str(out), license, asked)
    atomic_write(out / "README.md", readme)
    for name, text in modules_beside(form, domains, license).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        atomic_write(out / name, text)
    prompt = out / "system_prompt.txt" if form == "nemo-rl" and asked.prompt.system else None
    if prompt is not None:
        atomic_write(prompt, asked.prompt.system)
    return ExportResult(file, count - left_out.total() - len(failed), prompt, left_out, failed)


def _proved(
    rows: Iterator[tuple[ExportedProblem, Row]], form: str, check: RowCheck | None, failed: dict[str, str]
) -> Iterator[Row]:
    if check is None:
        yield from (row for _, row in rows)
        return
    while held := list(islice(rows, CHECKED_AT_ONCE)):
        for (problem, row), why in zip(held, check(form, held), strict=True):
            if why is None:
                yield row
            else:
                failed[str(problem.row["id"])] = why


def failing_rows(curated: Path, check: RowCheck) -> dict[str, str]:
    """Return why problems fail their proof, by id; programs that no format carries are skipped.

    Raises:
        SourceError: as `export_set`.
    """
    failed: dict[str, str] = {}
    judged = (one for one in _problems(curated) if one.program is None or needs_of(one.program) <= ANYTHING)
    rows = ((problem, FORMATS[PROVED_AS](problem)) for problem in judged)
    for _ in _proved(rows, PROVED_AS, check, failed):
        pass
    return failed


def set_records(curated: Path) -> dict[str, str]:
    """Return each problem's record by id.

    Raises:
        SourceError: there is no set, or a problem cannot be judged.
    """
    return {str(problem.row["id"]): problem.record for problem in _problems(curated)}


def _problems(curated: Path) -> Iterator[ExportedProblem]:
    """Yield a set's problems; all programs' tests are in memory."""
    files = sorted((curated / "data").glob("*.parquet"))
    if not files:
        raise SourceError(f"{curated}: no data/*.parquet; give the folder of a curated set, such as RUN/curated.")
    languages: dict[str, tuple[str, CodeLang]] = {}
    number = 0
    for file in files:
        frame = _read(file)
        languages |= _languages(frame, curated)
        for place, (name, statement) in enumerate(frame.select("id", "statement").iter_rows(), number):
            if statement is None:
                where = f"{curated}, row {place}, problem {name}"
                raise SourceError(
                    f"{where}: has no statement; withheld texts are put back by `goldilocks publish DIR --restore`."
                )
        number += frame.height
    if not number:
        raise SourceError(f"{curated}: the set holds no problems; there is nothing to export.")
    programs, asked = set_problems(curated, languages), read_asked(curated)
    rows = (row for file in files for row in _read(file).iter_rows(named=True))
    for number, row in enumerate(rows):
        yield _problem(row, number, programs, curated, asked)


def card_license(curated: Path) -> str:
    """Return the licence in a card's header, or `unknown`."""
    try:
        text = (curated / "README.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        return "unknown"
    import yaml

    header = text.partition("---\n")[2].partition("\n---")[0] if text.startswith("---\n") else ""
    table = yaml.safe_load(header)
    named = table.get("license") if isinstance(table, dict) else None
    return str(named) if named else "unknown"


def _write(rows: Iterator[Row], form: str, out: Path) -> Path:
    if form in LINES:
        file = out / "train.jsonl"
        with atomic_replace(file) as handle:
            handle.writelines((as_json(row) + "\n").encode() for row in rows)
        return file
    scratch = ScratchFolder("export")
    try:
        table = _as_table(rows, Path(scratch.path))
        if form in ON_DISK:
            from datasets import Dataset, disable_progress_bars

            disable_progress_bars()
            shutil.rmtree(out / "train", ignore_errors=True)
            Dataset(table.lazy().collect().to_arrow()).save_to_disk(out / "train")
            atomic_write(out / "dataset_dict.json", json.dumps({"splits": ["train"]}))  # `load_from_disk(out)` too
            return out / "train"
        file = out / "train.parquet"
        if isinstance(table, pl.DataFrame):
            write_parquet(file, table)
        else:
            write_scanned(file, table)
        return file
    finally:
        scratch.remove()


def _as_table(rows: Iterator[Row], folder: Path) -> pl.DataFrame | pl.LazyFrame:
    parts = list[pl.LazyFrame]()
    while held := list(islice(rows, ROWS_AT_ONCE)):
        column_types = {name: dtype for name, dtype in TYPES.items() if name in held[0]}
        frame = pl.DataFrame(held, schema_overrides=column_types, infer_schema_length=None)
        if len(held) < ROWS_AT_ONCE and not parts:
            return frame
        part = folder / f"{len(parts):05}.parquet"
        frame.write_parquet(part)
        parts.append(pl.scan_parquet(part, glob=False))
    return pl.concat(parts, how="vertical_relaxed")  # where a part has no value of a column, its type is not known


def _read(file: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, columns=[*NEEDED, "raw_answer", "accepted", "solution", "meta"], glob=False)
    except (pl.exceptions.ColumnNotFoundError, pl.exceptions.ComputeError) as error:
        raise SourceError(f"{file}: no table of a curated set ({error}); publish the set again.") from error


def _languages(frame: pl.DataFrame, curated: Path) -> dict[str, tuple[str, CodeLang]]:
    languages = {}
    code = frame.filter(pl.col("domain") == Domain.CODE)
    for name, group, meta in code.select("id", "group", "meta").iter_rows():
        try:
            languages[name] = group or name, CodeLang(str(json.loads(meta or "{}").get(FENCE, "python")))
        except ValueError as error:
            raise SourceError(f"{curated}: problem {name} asks for {error}; leave it out.") from error
    return languages


def _problem(
    row: Row, number: int, programs: Mapping[str, CodeProblem], curated: Path, asked: Asked
) -> ExportedProblem:
    code = row["domain"] == Domain.CODE
    where = f"{curated}, row {number}, problem {row['id']}"
    if code and row["id"] not in programs:
        raise SourceError(
            f"{where}: a code problem without tests in {curated / 'tests'}; publish its tests next to data."
        )
    if not code and row["answer"] is None:
        raise SourceError(f"{where}: has no reference answer, which every trainer needs.")
    program = programs[row["id"]] if code else None
    details = {FENCE: str(program.lang)} if program is not None else {}
    request = PromptRequest(row["id"], row["statement"], Domain(row["domain"]), row["lang"] or "en", details)
    messages = [{"role": message["role"], "content": message["content"]} for message in asked.prompt.messages(request)]
    tests = tests_of(program) if program is not None else None
    return ExportedProblem(row, number, messages, program, tests, asked)
