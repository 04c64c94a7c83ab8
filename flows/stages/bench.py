"""Prepare a bench's rows and, for programs, their tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import polars as pl

from curation.config import Bench
from curation.options import UPPER
from curation.programs import language_variants
from curation.records import Domain, DropReason, problem_id
from curation.storage.stages import Shard, read_shard
from flows.run.benches import BenchRun
from flows.run.run_folder import Run
from flows.run.stage import JUDGING_TABLE, TESTS_TABLE, Stage, StageResult, StageRun, shard_counts, split_rows
from flows.stages.sources import SOURCES
from flows.stages.tests import LANGUAGE_VARIANTS, TESTS

VERSION = "bench@1"
OUTSIDE_WINDOW = "outside_window"  # drop reason of rows outside the bench's window


def take_rows(job: StageRun) -> StageResult:
    """Keep distinct rows that can be judged and are in the bench's window, in the form asked."""
    bench, sources = _bench_of(job.run), job.problems.folder
    settings = json.dumps(bench.model_dump(mode="json", include={"window", "choices", "seed"}), sort_keys=True)
    first: dict[str, int] = {}
    for index in range(len(shard_counts(sources))):  # who was first does not depend on what is finished
        for name in read_shard(sources, "kept", index, ["id"])["id"]:
            first.setdefault(name, index)

    def split(frame: pl.DataFrame, index: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        reasons, evidence, rows = [], [], []
        here: set[str] = set()
        for row in frame.iter_rows(named=True):
            reason, words = _reason(row, bench, is_first=first[row["id"]] == index and row["id"] not in here)
            here.add(row["id"])
            reasons.append(reason)
            evidence.append(words)
            rows.append(row if reason is not None else _as_asked(row, bench))
        return split_rows(pl.DataFrame(rows, schema=frame.schema), job.stage.name, reasons, evidence)

    return job.filter(job.open(VERSION, settings, job.problems), split)


def _bench_of(run: Run) -> Bench:
    assert isinstance(run, BenchRun)
    return run.bench


def _reason(row: Mapping[str, Any], bench: Bench, *, is_first: bool) -> tuple[str | None, str]:
    if not (row["statement"] or "").strip():
        return DropReason.MISSING_STATEMENT.value, ""
    if not is_first:
        return DropReason.DUPLICATE.value, f"the same as {row['id']}"
    meta = json.loads(row["meta"] or "{}")
    if (window := bench.window) is not None:
        day = str(meta.get(window.column) or "")[:10]
        if not day or day < window.since or (window.until and day >= window.until):
            return OUTSIDE_WINDOW, f"{window.column} = {day or 'nothing'}"
    if bench.choices is not None:
        missing = [
            path for path in (bench.choices.right, *bench.choices.wrong) if not str(meta.get(path) or "").strip()
        ]
        return (DropReason.MISSING_ANSWER.value, f"no {missing[0]}") if missing else (None, "")
    if row["domain"] != Domain.CODE and not (row["answer"] or "").strip():
        return DropReason.MISSING_ANSWER.value, ""
    return None, ""


def _as_asked(row: Mapping[str, Any], bench: Bench) -> Mapping[str, Any]:
    """Shuffle a row's options, if any, below its question; the correct letter becomes the reference."""
    if bench.choices is None:
        return row
    meta = json.loads(row["meta"] or "{}")
    right = str(meta[bench.choices.right]).strip()
    options = [right, *(str(meta[path]).strip() for path in bench.choices.wrong)]
    Random(f"{bench.seed} {row['id']}").shuffle(options)
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip(UPPER, options, strict=False))
    statement = f"{row['statement'].rstrip()}\n\n{listed}"
    return {
        **row,
        "id": problem_id(statement),
        "statement": statement,
        "answer": UPPER[options.index(right)],
        "raw_statement": row["statement"],
        "raw_answer": right,
    }


def take_tests(job: StageRun) -> StageResult:
    """Keep all of the bench's tests; drop problems without any."""
    problems, sources = job.problems.folder, SOURCES.folder_in(job.run)

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        is_kept = pl.col("problem").is_in(frame["id"].implode())
        tests, judging = (read_shard(sources, table, index).filter(is_kept) for table in (TESTS_TABLE, JUDGING_TABLE))
        tested = set(tests["problem"])
        reasons = [None if name in tested else DropReason.TOO_FEW_TESTS.value for name in frame["id"]]
        kept, dropped = split_rows(frame, job.stage.name, reasons, [""] * frame.height)
        return Shard(frame.height, {"kept": kept, "dropped": dropped, TESTS_TABLE: tests, JUDGING_TABLE: judging})

    return job.shard_by_shard(job.open(VERSION, "", job.problems), work)


def ask_in_one_language(job: StageRun) -> StageResult:
    """Ask for every program in the bench's language."""
    problems, language = job.problems.folder, _bench_of(job.run).language

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        asked = frame.select(
            problem="id", language=pl.lit(language), passed=pl.lit(False), method=pl.lit("the bench asks for it")
        )
        kept, dropped = language_variants.make_variants(frame, asked)
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "asked": asked})

    return job.shard_by_shard(job.open(f"{VERSION} {language_variants.VERSION}", language, job.problems), work)


BENCH_ROWS = Stage(name="bench", title="Bench", folder="stages/02-bench", work=take_rows)
BENCH_TESTS = replace(TESTS, work=take_tests)
BENCH_LANGUAGE = replace(LANGUAGE_VARIANTS, work=ask_in_one_language)
