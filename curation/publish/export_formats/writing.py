"""Read a curated set, and write it in a format."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType

import polars as pl

from curation.prompts.asked import Asked, read_asked
from curation.prompts.solving import FENCE
from curation.publish.export_formats.rows import (
    FORMATS,
    MEASURED,
    TYPES,
    ExportedProblem,
    Row,
    as_json,
    row_of,
    tests_of,
)
from curation.publish.pages import render_template
from curation.records import Domain, PromptRequest, SourceError
from curation.response_formats import ANY
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import in_slices, write_scanned
from curation.storage.stages import atomic_replace, atomic_write
from curation.thinking import OPEN
from curation.verify.own_judges import VARIABLE
from curation.verify.programs.problem import CodeLang, CodeProblem
from curation.verify.programs.tables import set_problems

NEEDED = ("id", "group", "domain", "statement", "answer", "lang", "source", *MEASURED)

ROWS_AT_ONCE = 10_000
"""Rows held as objects."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The written files, counts left out by need, and failures by id."""

    file: Path
    rows: int
    system_prompt: Path | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


def export_set(curated: Path, form: str, out: Path, failing: Mapping[str, str] = MappingProxyType({})) -> ExportResult:
    """Write a curated set for another trainer, with a README: ``out/train.parquet``, ``train.jsonl`` or a folder.

    Args:
        failing: why problems are left out, by id (`curation.scoring.checking`).

    Raises:
        SourceError: the format is unknown, or cannot carry the set.
    """
    require_format(form)
    left_out: Counter[str] = Counter()
    failed: dict[str, str] = {}
    asked = read_asked(curated)
    if form == "nemo-rl" and asked.prompt.examples:
        raise SourceError(
            f"{curated}: its problems were asked with {len(asked.prompt.examples)} worked examples before them, and a "
            "row of nemo-rl holds one message; take another format."
        )
    domains = Counter[str]()

    def carried() -> Iterator[ExportedProblem]:
        for problem in exported_problems(curated):
            domains[problem.row["domain"]] += 1
            name = str(problem.row["id"])
            if problem.program is not None and problem.program.refused is not None:
                left_out["no tests that judge them"] += 1
            elif name in failing:
                failed[name] = failing[name]
            else:
                yield problem

    rows = (row_of(form, problem) for problem in carried())
    first = next(rows, None)
    if first is None:
        reasons = left_out + Counter(failed.values())
        why = ", ".join(f"{reason} ({number})" for reason, number in reasons.items())
        raise SourceError(f"{curated}: {form} can carry none of its {domains.total()} problems: {why}.")
    file = _write(chain([first], rows), form, out)
    license = card_license(curated)
    atomic_write(out / "README.md", _readme(form, curated.absolute().parent.name, str(out), license, asked))
    for name, text in _modules(form, domains.keys(), license).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        atomic_write(out / name, text)
    prompt = out / "system_prompt.txt" if form == "nemo-rl" and asked.prompt.system else None
    if prompt is not None:
        atomic_write(prompt, asked.prompt.system)
    return ExportResult(file, domains.total() - left_out.total() - len(failed), prompt, left_out, failed)


def require_format(form: str) -> None:
    """Raise `SourceError` for an unknown format."""
    if form not in FORMATS:
        raise SourceError(f"format {form!r} is not known; known are {', '.join(FORMATS)}.")


def set_records(curated: Path) -> dict[str, str]:
    """Return each problem's record by id.

    Raises:
        SourceError: there is no set, or a problem cannot be judged.
    """
    return {str(problem.row["id"]): problem.record for problem in exported_problems(curated)}


def card_license(curated: Path) -> str:
    """Return the licence in a card's header, or `unknown`.

    Raises:
        SourceError: the header is damaged.
    """
    try:
        text = (curated / "README.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        return "unknown"
    import yaml

    header = text.partition("---\n")[2].partition("\n---")[0] if text.startswith("---\n") else ""
    try:
        table = yaml.safe_load(header)
    except yaml.YAMLError as error:
        raise SourceError(f"{curated / 'README.md'}: its header is no YAML; publish the set again.") from error
    named = table.get("license") if isinstance(table, dict) else None
    return str(named) if named else "unknown"


@contextmanager
def _no_damage(curated: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise SourceError(f"{curated}/data: no table of a curated set ({error}); publish the set again.") from error


def exported_problems(curated: Path) -> Iterator[ExportedProblem]:
    """Yield a set's problems; all programs' tests are in memory."""
    files = sorted((curated / "data").glob("*.parquet"))
    if not files:
        raise SourceError(f"{curated}: no data/*.parquet; give the folder of a curated set, such as RUN/curated.")
    columns = [*NEEDED, "raw_answer", "accepted", "solution", "meta"]
    table = pl.scan_parquet(files, glob=False, extra_columns="ignore").select(columns).with_row_index("number")
    with _no_damage(curated):
        empty = table.filter(pl.col("statement").is_null()).select("number", "id").head(1).collect()
        code = table.filter(pl.col("domain") == Domain.CODE).select("id", "group", "meta").collect()
        height = table.select(pl.len()).collect().item()
        languages = {
            name: (group or name, CodeLang(str(json.loads(meta or "{}").get(FENCE, "python"))))
            for name, group, meta in code.iter_rows()
        }
    for number, name in empty.iter_rows():
        raise SourceError(
            f"{curated}, row {number}, problem {name}: has no statement; withheld texts are put back by `goldilocks "
            "publish DIR --restore`."
        )
    if not height:
        raise SourceError(f"{curated}: the set holds no problems; there is nothing to export.")
    programs, asked = set_problems(curated, languages), read_asked(curated)
    with _no_damage(curated):
        for rows in in_slices(table):
            yield from (_problem(row, programs, curated, asked) for row in rows.iter_rows(named=True))


def _problem(row: Row, programs: Mapping[str, CodeProblem], curated: Path, asked: Asked) -> ExportedProblem:
    number, is_code = row.pop("number"), row["domain"] == Domain.CODE
    where = f"{curated}, row {number}, problem {row['id']}"
    if is_code and row["id"] not in programs:
        raise SourceError(
            f"{where}: a code problem without tests in {curated / 'tests'}; publish its tests next to data."
        )
    if not is_code and row["answer"] is None:
        raise SourceError(f"{where}: has no reference answer, which every trainer needs.")
    program = programs[row["id"]] if is_code else None
    details = {FENCE: str(program.lang)} if program is not None else {}
    request = PromptRequest(row["id"], row["statement"], Domain(row["domain"]), row["lang"] or "en", details)
    messages = [{"role": message["role"], "content": message["content"]} for message in asked.prompt.messages(request)]
    return ExportedProblem(row, number, messages, program, tests_of(program) if program is not None else None, asked)


def _write(rows: Iterator[Row], form: str, out: Path) -> Path:
    file = out / str(FORMATS[form]["file"])
    if file.suffix == ".jsonl":
        with atomic_replace(file) as handle:
            handle.writelines((as_json(row) + "\n").encode() for row in rows)
        return file
    with ScratchFolder("export") as folder:
        table = _as_table(rows, folder)
        if file.suffix == ".parquet":
            write_scanned(file, table)
            return file
        from datasets import Dataset, disable_progress_bars

        disable_progress_bars()
        shutil.rmtree(file, ignore_errors=True)
        Dataset(table.collect().to_arrow()).save_to_disk(file)
        atomic_write(out / "dataset_dict.json", json.dumps({"splits": ["train"]}))  # `load_from_disk(out)` too
        return file


def _as_table(rows: Iterator[Row], folder: Path) -> pl.LazyFrame:
    chunks = list[pl.LazyFrame]()
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        column_types = {name: dtype for name, dtype in TYPES.items() if name in batch[0]}
        chunk = folder / f"{len(chunks):05}.parquet"
        pl.DataFrame(batch, schema_overrides=column_types, infer_schema_length=None).write_parquet(chunk)
        chunks.append(pl.scan_parquet(chunk, glob=False))
    return pl.concat(chunks, how="vertical_relaxed")  # a chunk without values of a column does not know its type


def _readme(form: str, name: str, folder: str, license: str, asked: Asked) -> str:
    text = FORMATS[form]["readme"].replace("{folder}", folder)
    if not asked.prompt.system:
        text = text.replace(f"        system_prompt_file: {folder}/system_prompt.txt\n", "")
    read = {"thinking": (asked.thinking, OPEN), "response_format": (asked.response_format, ANY)}
    return render_template(
        Path(__file__).with_name("readme.md.jinja"),
        form=form,
        name=name,
        text=text,
        license=license,
        of_nemo_gym=_of_nemo_gym(license),
        asked=asked,
        read=[f"`{name} = {value!r}`" for name, (value, usual) in read.items() if value != usual],
        judges=[label.partition("@")[0] for label in asked.judges],
        variable=VARIABLE,
    )


def _modules(form: str, domains: Set[str], license: str) -> Mapping[str, str]:
    domain = {"math": "math", "code": "coding"}[next(iter(domains))] if len(domains) == 1 else "other"
    return {
        name: text.replace("{domain}", domain).replace("{license}", _of_nemo_gym(license))
        for name, text in FORMATS[form].get("modules", {}).items()
    }


def _of_nemo_gym(license: str) -> str:
    names: Mapping[str, str] = FORMATS["nemo-gym"]["licenses"]
    return names.get(license.lower(), "TBD")
