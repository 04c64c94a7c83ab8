"""`goldilocks export` and `verify statements`, `overlap`, `answers`, `code`, `language`: files without a run."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Source
from curation.embeddings import require_embeddings
from curation.filters.decontamination.files import contamination_file
from curation.filters.decontamination.overlap import METHODS, OverlapSettings
from curation.filters.statements.filtering import classify
from curation.languages.identification import UNDETERMINED, identify_many
from curation.publish.export_formats import FORMATS, export_set
from curation.publish.export_formats.writing import failing_rows, require_format
from curation.records import ConfigError
from curation.response_formats import checked_format
from curation.sources.files import kind_of, raw_rows, read_rows
from curation.sources.problems import read_choices, read_texts
from curation.sources.reading import QUARANTINE, read_parts
from curation.sources.rows import Row, require_path
from curation.sources.selection import FIRST_ROWS
from curation.storage.stages import atomic_replace, require_outside, write_parquet
from curation.thinking import OPEN, ThinkingTags
from curation.verify.own_judges import judge_at
from curation.verify.pairs import verify_pairs
from flows.publish.curated_set import published_folder
from flows.run.progress import bar
from flows.run.terminal import echo

FIELDS = ("statement", "answer", "choices", "lang", "id", "source", "meta")
MAPPED_ONLY = ("source", "meta")
"""Fields that are read only where `--map` names them: in other files these names mean other things."""
BATCH = 20_000


def classify_file(path: Path, out: Path, columns: Sequence[str], bad_rows: int = 0) -> None:
    """Write one JSON line per row of ``path`` with id, keep, reason, evidence, statement and answer.

    Up to ``bad_rows`` rows that cannot be read are set aside, as in a run: each has its line, dropped as ``bad_row``,
    and its bytes are in a parquet file next to ``out``.
    """
    aside = out.parent / f"{out.name}.quarantine.parquet"
    require_outside(out, path)
    require_outside(aside, path)
    kept = total = 0
    quarantined = [QUARANTINE.to_frame()]
    with atomic_replace(out) as handle, bar("classify", None) as advance:
        for verdicts, unreadable in _classified(path, columns, bad_rows):
            verdicts.write_ndjson(handle)
            kept += int(verdicts["keep"].sum())
            total += verdicts.height
            quarantined.append(unreadable)
            advance(verdicts.height)
    bad = pl.concat(quarantined)
    echo(f"{total:,} rows, {kept:,} kept, {total - kept:,} dropped: {out}")
    if bad.height:
        write_parquet(aside, bad)
        echo(f"{bad.height:,} rows cannot be read and are set aside: {aside}")


def _classified(path: Path, mapped: Sequence[str], bad_rows: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the verdicts on each batch of a file's rows, in order, and those of them that cannot be read."""
    kind = kind_of(path)
    raws = list(itertools.islice(raw_rows(path, kind), FIRST_ROWS))
    if not raws:
        return
    places = _columns([raw.row for raw in raws if raw.row is not None], mapped, path)
    table = {"name": "file", "kind": kind, "path": str(path.resolve())}
    source = Source.model_validate({**table, "bad_rows": bad_rows, "columns": {"statement": places["statement"]}})

    def build(rows: list[Row], positions: Sequence[int]) -> pl.DataFrame:
        columns: dict[str, list[Any]] = {
            field: (read_choices if field == "choices" else read_texts)(column, rows)
            for field, column in places.items()
        }
        if all(name is None for name in columns["id"]):
            columns["id"] = [str(position) for position in positions]
        kinds = {name: pl.List(pl.String()) if name == "choices" else pl.String() for name in columns}
        return classify(pl.DataFrame(columns, schema=kinds)).drop("rule")

    for part in read_parts(source, Path.cwd(), BATCH, build):
        sound = part.built.with_columns(_row=pl.Series(part.positions, dtype=pl.Int64))
        bad = part.dropped.select("reason", "evidence", id=pl.col("row").cast(pl.String), keep=False, _row="row")
        verdicts = pl.concat([sound, bad.cast({"reason": pl.String})], how="diagonal").sort("_row")
        yield verdicts.with_columns(id=pl.coalesce("id", pl.col("_row").cast(pl.String))).drop("_row"), part.quarantine


def tags_of(thinking: str) -> ThinkingTags:
    """Return the tags that the option `--thinking` names.

    Raises:
        ConfigError: it names none.
    """
    try:
        return ThinkingTags.of(thinking)
    except ValueError as error:
        raise ConfigError(f"--thinking {error}.") from error


def verify_file(
    path: Path, out: Path, workers: int | None, thinking: str, response_format: str, judges: Sequence[str]
) -> None:
    """Judge a file of pairs, whose responses think in these tags and keep to this format, and print the counts.

    Raises:
        ConfigError: there are no such tags, or no such format or judge, or the output is the input.
    """
    require_outside(out, path)
    tags = tags_of(thinking)
    try:
        checked_format(response_format)
    except ValueError as error:
        raise ConfigError(f"--format {error}.") from error
    own = [judge_at(name) for name in judges]
    with bar("verify answers", None) as advance:
        counts = verify_pairs(path, out, workers, advance, tags=tags, response_format=response_format, judges=own)
    _print_counts("pairs", counts, out)


def verify_code_file(
    problems: Path,
    submissions: Path,
    out: Path,
    workers: int | None = None,
    *,
    thinking: str = OPEN,
    every: bool = False,
    rung: str | None = None,
    allow_none: bool = False,
) -> None:
    """Judge a file of submissions into ``out``, and print the isolation in force, then the counts.

    Args:
        allow_none: run programs without isolation if there is none.
    """
    from curation.verify.programs.files import verify_programs
    from curation.verify.programs.tools import Runner

    require_outside(out, problems, submissions)
    tags = tags_of(thinking)
    with Runner(workers, rung=rung, allow_none=allow_none) as runner:
        echo(runner.description)
        with bar("verify code", None) as advance:
            counts = verify_programs(problems, submissions, out, runner, advance, every=every, tags=tags)
    _print_counts("programs", counts, out)


def _print_counts(what: str, counts: Mapping[str, int], out: Path) -> None:
    counts_text = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    echo(f"{sum(counts.values()):,} {what}: {counts_text or 'none'}: {out}")


def decontaminate_file(
    path: Path,
    against: Sequence[Path],
    out: Path,
    methods: Sequence[str],
    field: str | None,
    benchmark_field: str | None,
) -> None:
    """Write which rows of a file are contaminated by benchmarks, and print the counts."""
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise ConfigError(f"--method {unknown[0]}: the methods are {', '.join(METHODS)}.")
    if "embedding" in methods:
        require_embeddings()
    settings = OverlapSettings(methods=tuple(methods)) if methods else OverlapSettings()
    require_outside(out, path, *against)
    rows, overlapping, templates, hits = contamination_file(
        path, against, out, settings, field=field, benchmark_field=benchmark_field
    )
    by_method = ", ".join(f"{method} {count:,}" for method, count in hits.items())
    made = f", {templates:,} have a benchmark's template with other figures" if templates else ""
    echo(f"{rows:,} rows, {overlapping:,} overlap ({by_method}){made}: {out}")


def export_folder(folder: Path, form: str, out: Path, *, check: bool = False) -> None:
    """Write the set of a run, or a set, for another trainer; print how many problems it has, and what is left out.

    Args:
        form: a format, or `all`, each in a folder of its name.
        check: prove each row (`curation.scoring.checking`), and leave out those that fail.
    """
    curated = published_folder(folder)
    require_outside(out, curated)
    formats, failing = FORMATS if form == "all" else (form,), dict[str, str]()
    for name in formats:
        require_format(name)
    if check:
        from curation.scoring.checking import check_rows

        failing = failing_rows(curated, check_rows)
    for name in formats:
        _export(curated, name, out / name if form == "all" else out, failing)


def _export(curated: Path, form: str, out: Path, failing: Mapping[str, str]) -> None:
    written = export_set(curated, form, out, failing)
    prompt_file = f", {written.system_prompt}" if written.system_prompt else ""
    echo(f"{written.rows:,} problems: {written.file}{prompt_file}")
    if written.left_out:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in written.left_out.items())
        echo(f"{sum(written.left_out.values()):,} problems left out, which {form} cannot carry: {reasons}")
    if written.failed:
        echo(f"{len(written.failed):,} problems left out of {form}, which fail their proof:")
        for name, why in written.failed.items():
            echo(f"  {name}: {why}")


def _columns(first: Sequence[Row], mapped: Sequence[str], path: Path) -> dict[str, str]:
    """Return field → column: by ``--map``, else by the usual names, if they are there.

    Raises:
        ConfigError: an item is not FIELD=COLUMN, or names no field.
        SourceError: the first rows lack the statement, or a column that is mapped.
    """
    given = {}
    for item in mapped:
        field, equals, column = item.partition("=")
        if not equals or field not in FIELDS:
            raise ConfigError(f"--map {item}: write FIELD=COLUMN; fields are {', '.join(FIELDS)}.")
        given[field] = column
    named = {name for row in first for name in row}
    statement = "statement" if "statement" in named and "problem" not in named else "problem"
    usual = {name: name for name in FIELDS if name not in MAPPED_ONLY}
    columns = {**usual, "statement": statement, **given}
    for field in {"statement", *given}:
        require_path(first, columns[field], f"{path} ({field})")
    return columns


def detect_language_file(path: Path, out: Path, *, field: str = "text", among: tuple[str, ...] = ()) -> dict[str, int]:
    """Write a file's rows with ``lang`` and ``confidence``; return the number of rows per language.

    Args:
        path: .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv, with texts in ``field``.
        out: JSON lines, in order; ``lang`` is an ISO 639-1 code or ``undetermined``.
        among: possible codes; empty for all.

    Raises:
        SourceError: the file is missing or unreadable, or lacks the field.
    """
    require_outside(out, path)
    rows, counts = read_rows(path), Counter[str]()
    with atomic_replace(out) as handle, bar("detect-language", None) as advance:
        while batch := list(itertools.islice(rows, BATCH)):
            if not counts:
                require_path(batch, field, str(path))
            texts = [row.get(field) for row in batch]
            identified = identify_many([text if isinstance(text, str) else "" for text in texts], among or None)
            for row, identification in zip(batch, identified, strict=True):
                lang = identification.lang or UNDETERMINED
                counts[lang] += 1
                line = {**row, "lang": lang, "confidence": round(identification.confidence, 4)}
                handle.write(json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n")
            advance(len(batch))
    return dict(counts.most_common())
