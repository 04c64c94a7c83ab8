"""`goldilocks explain`: prints a problem's way through a run, with the evidence, and each version's decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from curation.policies.excerpt import excerpt
from curation.records import DropReason, StoreError
from flows.cli.as_json import print_json
from flows.cli.settings import deciding_settings
from flows.pipelines.run_tables import (
    Rows,
    Step,
    attempt_ids_of,
    explain_table,
    find_id,
    judged_attempts,
    steps_of,
    verifier_of,
    version_rows,
)
from flows.publish.versions import Version, refreshed_run
from flows.run.run_folder import Run, open_run
from flows.run.stage import Kind, rows_of
from flows.run.terminal import echo
from flows.run.training import is_training
from flows.stages.decisions import decisions_of
from flows.stages.questions import final_verdicts

SHOWN = 20
"""Rows of a drop reason that are listed."""


def open_curation(folder: Path) -> Run:
    """Open a curation run.

    Raises:
        StoreError: the folder holds a training run, or none.
    """
    if is_training(folder):
        raise StoreError(f"{folder} holds a training run; give the folder of the run that made its set.")
    return open_run(folder.absolute())


def explain_problem(folder: Path, problem: str, *, as_json: bool = False) -> None:
    """Print a problem's way, by its id or an unambiguous beginning; of a drop reason, the rows with it."""
    run = open_curation(folder)
    if problem in set(DropReason):
        rows = _dropped_rows(run, problem)
        if as_json:
            print_json({"reason": problem, "rows": rows.to_dicts()})
        else:
            _show_dropped(run, problem, rows)
        return
    name = find_id(run, problem)
    if as_json:
        print_json(explain_table(run, name))
        return
    for line in _lines(run, name):
        echo(line)


def _dropped_rows(run: Run, reason: str) -> pl.DataFrame:
    files = sorted((run.folder / "curated" / "dropped").glob("*.parquet"))
    if not files:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    dropped = pl.scan_parquet(files, glob=False).filter(pl.col("reason") == reason)
    return dropped.select("id", "source", "row", "statement", "evidence").collect()


def _show_dropped(run: Run, reason: str, rows: pl.DataFrame) -> None:
    for name, statement in rows.select("id", "statement").head(SHOWN).iter_rows():
        echo(f"{name}  {excerpt(statement or '')}")
    more = f"; `goldilocks explain {run.folder} {reason} --json` lists all" if rows.height > SHOWN else ""
    echo(f"{rows.height:,} rows were dropped as {reason}{more}")


def _lines(run: Run, name: str) -> Iterator[str]:
    first, *steps = steps_of(run, name)
    for row in first.kept:
        yield f"{name}  {_place(row)}, licence {row['license']}"
        yield _field("statement", row["statement"])
        yield from (_field("option", option) for option in row["choices"] or ())
        yield _field("reference", row["answer"])
    variants, before = attempt_ids_of(run, name), first.kept
    for step in steps:
        if step.stage.kind is Kind.FILTER:
            yield from _filter_lines(step, name, before)
            before = step.kept
        elif step.stage.kind is Kind.DECISION:
            for variant in variants:
                if variant != name:
                    yield f"  asked as {variant}"
                yield from _decision_lines(run, step, variant)
    for row in version_rows(run, variants):
        yield from _version_lines(run, row)
    for step in steps:
        title = step.stage.title
        if step.stage.kind is Kind.ADDITION:
            yield from (f"{title}: {line}" for line in step.lines)
        elif step.stage.kind is Kind.EXPORT:
            for row in step.dropped:
                yield f"{title}: dropped, {row['reason']}: {row['evidence']}"
                yield from _settings(row["reason"])
            if step.kept:
                yield f"{title}: in the curated set"


def _place(row: dict[str, Any]) -> str:
    return f"row {row['row']} of {row['source']}"


def _field(label: str, text: Any) -> str:
    return f"  {label:<10} {text if text is not None else '(none)'}"


def _settings(reason: str) -> Iterator[str]:
    if settings := deciding_settings(DropReason(reason)):
        yield _field("settings", ", ".join(setting.key for setting in settings))


def _filter_lines(step: Step, name: str, before: Rows) -> Iterator[str]:
    """Yield what a stage did to rows, which were ``before``."""
    title = step.stage.title
    for row in step.dropped:
        yield f"{title}: dropped {_place(row)}, {row['reason']}: {row['evidence']}"
        yield from _settings(row["reason"])
    texts = {(row["source"], row["row"]): (row["statement"], row["answer"]) for row in before}
    for row in step.kept:
        now = row["statement"], row["answer"]
        if row["id"] != name:
            yield f"{title}: kept {_place(row)}, as {row['id']}"
        elif texts.get((row["source"], row["row"]), now) == now:
            yield f"{title}: kept {_place(row)}"
        else:
            yield f"{title}: kept {_place(row)}, rewritten"
            yield from (_field("statement", now[0]), _field("reference", now[1]))
    yield from (f"  {line}" for line in step.lines)
    if not step.kept and not step.dropped:
        yield f"{title}: not reached"


def _decision_lines(run: Run, step: Step, name: str) -> Iterator[str]:
    part, row, verifier = step.stage.part, step.decision_on(name), verifier_of(run)
    title = part.replace("stage", "stage ")
    if row is None:
        yield f"{title}: not reached"
        return
    decision = "kept" if row["keep"] else f"dropped, {row['reason']}"
    yield f"{title} ({row['policy']}, {verifier}): {decision}: {row['evidence']}"
    yield from _settings(row["reason"]) if not row["keep"] else ()
    if row["pass_rate"] is not None:
        failures = f", {row['timeout']} timed out, {row['broken']} broken" if row["timeout"] or row["broken"] else ""
        interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
        yield f"  pass rate  {row['pass_rate']:.3f} over {row['judged']} attempts, {interval}{failures}"
    yield from _attempt_lines(run, part, verifier, name)
    for stage in (final_verdicts(run, part), decisions_of(part)):
        if stage.enabled(run):
            yield from (f"  {line}" for line in stage.explain(run, stage.folder_in(run, verifier), name))


def _attempt_lines(run: Run, part: str, verifier: str, name: str) -> Iterator[str]:
    judged = judged_attempts(run, part, verifier, name)
    votes = Counter(verdict["answer_class"] for verdict, _ in judged)
    for verdict, attempt in judged:
        answer_class = verdict["answer_class"]
        named = f"class {answer_class}, {votes[answer_class]} votes" if answer_class is not None else "no class"
        answer = str(verdict["answer"])
        if answer.startswith("```"):
            language, *lines = answer.split("\n")
            answer = f"{language.strip('`')}, {len(lines) - 1} lines"
        text = (attempt["text"] or attempt["answer"] or "") if attempt is not None else ""
        yield (
            f"  attempt {verdict['index']:<3} {verdict['outcome']:<9} {answer:<20} "
            f"{named}; {verdict['method']}; … {' '.join(text.split())[-60:]}"
        )


def _version_lines(run: Run, row: dict[str, Any]) -> Iterator[str]:
    version: Version = row["version"]
    made, again, is_measured = version.made_on, "", False
    if version.origin == "refresh":
        run = refreshed_run(run, version)
        why = rows_of(run.place / "chosen", "why", row["problem"], "problem")
        is_measured = why.height > 0
        made += f", refreshed with {version.policy}"
        again = f"; judged again ({why['why'][0]})" if is_measured else "; not judged again"
    decision = "in the set" if row["published"] else "kept, left out for the set's size"
    yield f"version {version.number} ({made}): {decision if row['keep'] else 'dropped, ' + row['reason']}"
    measured = f"no attempt of {row['policy']} could be judged, {row['measured_on']}"
    if row["pass_rate"] is not None:
        measured = (
            f"pass rate {row['pass_rate']:.3f} over {row['judged']} attempts of {row['policy']}, {row['measured_on']}, "
            f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
        )
    yield f"  {measured}{again}"
    if is_measured:
        yield from _attempt_lines(run, run.parts[-1], version.verifier, row["problem"])
