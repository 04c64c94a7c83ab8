"""Prints a problem's way through a run, with the evidence, and each version's decision.

For a training run, only its attempts are printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape

from curation.config.reasons import SETTINGS_OF
from curation.policies.excerpt import excerpt
from curation.records import ATTEMPT, VERDICT, DropReason, StoreError
from flows.pipelines.find_problem import attempt_ids_of, filters_of, find_id
from flows.publish.curated_set import published_verifier
from flows.publish.versions import RefreshedRun, Version, newest_run, refreshed_run, scan_decisions, stored_versions
from flows.run.lookup import rows_of
from flows.run.pipeline import read_result
from flows.run.run_folder import Run, open_run
from flows.run.stage import Stage
from flows.run.terminal import SafeConsole
from flows.run.training_status import is_training
from flows.stages.attempts import attempt_store, attempts_of
from flows.stages.decisions import decisions_of
from flows.stages.export import EXPORT
from flows.stages.judging import verifier_version
from flows.stages.questions import final_verdicts
from flows.stages.translation import TRANSLATION

_STATEMENT = ("statement", "answer")
_NAME = ("problem", "sampling", "index")
_SHOWN = (*_NAME, "purpose", "step", "version", "newest_version", "tokens", "finish", "text")


def explain_problem(folder: Path, problem: str) -> None:
    """Print a problem's way, by its id or an unambiguous beginning."""
    if is_training(folder):
        return _explain_in_training(folder.absolute(), problem)
    run = open_run(folder.absolute())
    console = SafeConsole(markup=True, soft_wrap=False)
    name = find_id(run, problem)
    first, *filters = filters_of(run)
    before = rows_of(first.folder_in(run), "kept", name)
    for row in before.iter_rows(named=True):
        console.print(f"[bold]{name}[/bold]  row {row['row']} of {escape(row['source'])} ({escape(row['license'])})")
        _print_field(console, "statement", row["statement"])
        for option in row["choices"] or ():
            _print_field(console, "option", option)
        _print_field(console, "reference", row["answer"])
    for stage in filters:
        before = _print_filter(console, run, stage, name, before)
    attempt_ids = attempt_ids_of(run, name)
    verifier = published_verifier(run) or verifier_version(run)
    for part in run.parts:
        for attempt_id in attempt_ids:
            if attempt_id != name:
                console.print(f"  asked as {attempt_id}")
            _print_difficulty(console, run, part, verifier, attempt_id)
    for attempt_id in attempt_ids:
        _print_versions(console, run, attempt_id)
    newest = newest_run(run.folder)
    for attempt_id in attempt_ids if TRANSLATION.enabled(newest) else ():
        for line in TRANSLATION.explain(newest, TRANSLATION.folder_in(newest), attempt_id):
            console.print(f"[bold]{TRANSLATION.title}[/bold]: {escape(line)}", soft_wrap=True)
    _print_export(console, newest, attempt_ids)


def _print_export(console: Console, run: Run, attempt_ids: Sequence[str]) -> None:
    folder, title = EXPORT.folder_in(run), f"[bold]{EXPORT.title}[/bold]"
    for attempt_id in attempt_ids:
        for row in rows_of(folder, "dropped", attempt_id).iter_rows(named=True):
            console.print(f"{title}: dropped, {row['reason']}: {escape(row['evidence'])}")
            _print_settings(console, row["reason"])
    if any(rows_of(folder, "kept", attempt_id).height for attempt_id in attempt_ids):
        console.print(f"{title}: in the curated set")


def _print_settings(console: Console, reason: str) -> None:
    if keys := SETTINGS_OF[DropReason(reason)]:
        _print_field(console, "settings", ", ".join(keys))


def _print_field(console: Console, label: str, text: Any) -> None:
    console.print(f"  {label:<10} {text if text is not None else '(none)'}", soft_wrap=True, markup=False)


def _print_filter(console: Console, run: Run, stage: Stage, name: str, before: pl.DataFrame) -> pl.DataFrame:
    """Print what a stage did to rows (``before``), and return those it kept."""
    title, folder = f"[bold]{stage.title}[/bold]", stage.folder_in(run)
    kept, dropped = _rows_about(folder, "kept", name), _rows_about(folder, "dropped", name)
    for row in dropped.iter_rows(named=True):
        where = f"row {row['row']} of {escape(row['source'])}"
        console.print(f"{title}: dropped {where}, {row['reason']}: {escape(str(row['evidence']))}", soft_wrap=True)
        _print_settings(console, row["reason"])
    texts = {(row["source"], row["row"]): [row[key] for key in _STATEMENT] for row in before.iter_rows(named=True)}
    for row in kept.iter_rows(named=True):
        where = f"row {row['row']} of {escape(row['source'])}"
        if row["id"] != name:
            console.print(f"{title}: kept {where}, as {row['id']}")
            continue
        is_rewritten = texts.get((row["source"], row["row"])) not in (None, [row[key] for key in _STATEMENT])
        console.print(f"{title}: kept {where}{', rewritten' if is_rewritten else ''}")
        if is_rewritten:
            _print_field(console, "statement", row["statement"])
            _print_field(console, "reference", row["answer"])
    for line in stage.explain(run, folder, name):
        console.print(f"  {line}", soft_wrap=True, markup=False)
    if kept.is_empty() and dropped.is_empty():
        console.print(f"{title}: [dim]not reached[/dim]")
    return kept


def _rows_about(folder: Path, table: str, name: str) -> pl.DataFrame:
    rows = rows_of(folder, table, name)
    return rows if rows.height else rows_of(folder, table, name, "group")


def _print_difficulty(console: Console, run: Run, part: str, verifier: str, name: str) -> None:
    decisions = rows_of(decisions_of(part).folder_in(run, verifier), "decisions", name, "problem")
    title = f"[bold]{part.replace('stage', 'stage ')}[/bold]"
    if decisions.is_empty():
        console.print(f"{title}: [dim]not reached[/dim]")
        return
    row = decisions.row(0, named=True)
    decision = "kept" if row["keep"] else f"dropped, {row['reason']}"
    console.print(
        f"{title} ({escape(row['policy'])}, {verifier}): {decision}: {escape(row['evidence'])}", soft_wrap=True
    )
    if not row["keep"]:
        _print_settings(console, row["reason"])
    if row["pass_rate"] is not None:
        failures = f", {row['timeout']} timed out, {row['broken']} broken" if row["timeout"] or row["broken"] else ""
        interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
        console.print(f"  pass rate  {row['pass_rate']:.3f} over {row['judged']} attempts, {interval}{failures}")
    _print_attempts(console, run, part, verifier, name)
    for stage in (final_verdicts(run, part), decisions_of(part)):
        for line in stage.explain(run, stage.folder_in(run, verifier), name) if stage.enabled(run) else ():
            console.print(f"  {line}", soft_wrap=True, markup=False)


def _print_attempts(console: Console, run: Run, part: str, verifier: str, name: str) -> None:
    verdicts = rows_of(final_verdicts(run, part).folder_in(run, verifier), "verdicts", name, "problem")
    attempts_result = read_result(attempts_of(part), run, verifier)
    attempts = (
        attempt_store(run, attempts_result).read([name])
        if attempts_result is not None
        else pl.DataFrame(schema=ATTEMPT)
    )
    last_words = {attempt["index"]: _last_words(attempt) for attempt in attempts.iter_rows(named=True)}
    class_sizes: Counter[int | None] = Counter(verdicts["answer_class"].to_list())
    for verdict in verdicts.iter_rows(named=True):
        answer_class = verdict["answer_class"]
        votes = f"class {answer_class}, {class_sizes[answer_class]} votes" if answer_class is not None else "no class"
        console.print(
            f"  attempt {verdict['index']:<3} {verdict['outcome']:<9} {_brief(verdict['answer']):<20} "
            f"{votes}; {verdict['method']}; … {last_words.get(verdict['index'], '')}",
            soft_wrap=True,
            markup=False,
        )


def _brief(answer: str | None) -> str:
    if answer is None or not answer.startswith("```"):
        return str(answer)
    lines = answer.split("\n")
    return f"{lines[0].strip('`')}, {len(lines) - 2} lines"


def _last_words(attempt: dict[str, Any]) -> str:
    return " ".join((attempt["text"] or attempt["answer"] or "").split())[-60:]


def _print_versions(console: Console, run: Run, name: str) -> None:
    for version in stored_versions(run.folder):
        decisions = scan_decisions(run.folder, version.number).filter(pl.col("problem") == name).collect()
        if decisions.is_empty():
            continue
        row = decisions.row(0, named=True)
        refreshed = refreshed_run(run, version)
        reason = _reason_for_refresh(refreshed, name) if version.origin == "refresh" else None
        console.print(f"[bold]{_title(version)}[/bold]: {_decision_text(row)}", soft_wrap=True)
        console.print(f"  {_measurement_text(row)}{_refresh_text(version, reason)}", soft_wrap=True, markup=False)
        if reason is not None:
            _print_attempts(console, refreshed, run.parts[-1], version.verifier, name)


def _title(version: Version) -> str:
    refreshed_with = f", refreshed with {escape(version.policy)}" if version.origin == "refresh" else ""
    return f"version {version.number} ({version.made_on}{refreshed_with})"


def _decision_text(row: dict[str, Any]) -> str:
    if row["published"]:
        return "in the set"
    if row["keep"]:
        return "kept, left out for the set's size"
    return f"dropped, {row['reason']}"


def _measurement_text(row: dict[str, Any]) -> str:
    if row["pass_rate"] is None:
        return f"no attempt of {row['policy']} could be judged, {row['measured_on']}"
    interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
    return (
        f"pass rate {row['pass_rate']:.3f} over {row['judged']} attempts of {row['policy']}, {row['measured_on']}, "
        f"{interval}"
    )


def _refresh_text(version: Version, reason: str | None) -> str:
    if version.origin != "refresh":
        return ""
    return f"; judged again ({reason})" if reason is not None else "; not judged again"


def _reason_for_refresh(run: RefreshedRun, name: str) -> str | None:
    for file in sorted((run.place / "chosen" / "why").glob("*.parquet")):
        rows = pl.scan_parquet(file, glob=False).filter(pl.col("problem") == name).collect()
        if not rows.is_empty():
            return str(rows["why"][0])
    return None


def _explain_in_training(run: Path, beginning: str) -> None:
    from training.rollouts.attempt_log import read_attempts, verdict_tables

    problem = _find_id(run, beginning)
    chosen = pl.col("problem") == problem
    verdicts = pl.concat([pl.DataFrame(schema=VERDICT), *(table.filter(chosen) for table in verdict_tables(run))])
    attempts = read_attempts(run, _SHOWN, problems=[problem])
    judged = attempts.join(
        verdicts.select(*_NAME, "reference", "outcome", "answer", "method"),
        on=list(_NAME),
        how="left",
        maintain_order="left",
    )
    console = SafeConsole()
    console.print(f"{problem}: {judged.height:,} attempts; reference {excerpt(judged['reference'][0])}")
    for row in judged.iter_rows(named=True):
        versions = " to ".join(dict.fromkeys([str(row["version"]), str(row["newest_version"])]))
        answer = f" {excerpt(row['answer'], 60)}" if row["answer"] is not None else ""
        console.print(
            f"  {row['purpose']} at step {row['step']}, version {versions}, attempt {row['index']}: "
            f"{row['outcome'] or 'format'}{answer}; {row['method']}; {row['tokens']} tokens, {row['finish']}; "
            f"{excerpt(row['text'], 120)}"
        )


def _find_id(run: Path, beginning: str) -> str:
    from training.rollouts.attempt_log import attempt_tables

    ids: set[str] = set()
    for table in attempt_tables(run, ["problem", "index"]):
        ids.update(table.filter(pl.col("problem").str.starts_with(beginning))["problem"])
    if len(ids) != 1:
        examples = f": {', '.join(sorted(ids)[:5])}; give more" if ids else ""
        raise StoreError(f"{beginning!r} begins {len(ids)} ids of attempted problems in {run}{examples}.")
    return ids.pop()
