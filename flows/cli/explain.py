"""`goldilocks explain`: prints a problem's way through a run, with the evidence, and each version's decision.

For a training run, only its attempts are printed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape

from curation.policies.excerpt import excerpt
from curation.records import VERDICT, ConfigError, DropReason, StoreError
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
from flows.run.terminal import SafeConsole
from flows.run.training import is_training
from flows.stages.decisions import decisions_of
from flows.stages.questions import final_verdicts

_STATEMENT = ("statement", "answer")
_NAME = ["problem", "sampling", "index"]


def explain_problem(folder: Path, problem: str, *, as_json: bool = False) -> None:
    """Print a problem's way, by its id or an unambiguous beginning."""
    if is_training(folder):
        if as_json:
            raise ConfigError(f"{folder} holds a training run, of which `explain` has no --json; leave it out.")
        return _explain_in_training(folder.absolute(), problem)
    run = open_run(folder.absolute())
    name = find_id(run, problem)
    if as_json:
        return print_json(explain_table(run, name))
    console = SafeConsole(markup=True, soft_wrap=False)
    first, *steps = steps_of(run, name)
    for row in first.kept:
        console.print(f"[bold]{name}[/bold]  row {row['row']} of {escape(row['source'])} ({escape(row['license'])})")
        _print_field(console, "statement", row["statement"])
        for option in row["choices"] or ():
            _print_field(console, "option", option)
        _print_field(console, "reference", row["answer"])
    verifier, variants, before = verifier_of(run), attempt_ids_of(run, name), first.kept
    for step in steps:
        if step.stage.kind is Kind.FILTER:
            _print_filter(console, step, name, before)
            before = step.kept
        elif step.stage.kind is Kind.DECISION:
            for variant in variants:
                if variant != name:
                    console.print(f"  asked as {variant}")
                _print_difficulty(console, run, step, verifier, variant)
    for row in version_rows(run, variants):
        _print_version(console, run, row)
    for step in steps:
        title = f"[bold]{step.stage.title}[/bold]"
        if step.stage.kind is Kind.ADDITION:
            for line in step.lines:
                console.print(f"{title}: {escape(line)}", soft_wrap=True)
        elif step.stage.kind is Kind.EXPORT:
            for row in step.dropped:
                console.print(f"{title}: dropped, {row['reason']}: {escape(row['evidence'])}")
                _print_settings(console, row["reason"])
            if step.kept:
                console.print(f"{title}: in the curated set")


def _print_settings(console: Console, reason: str) -> None:
    if settings := deciding_settings(DropReason(reason)):
        _print_field(console, "settings", ", ".join(setting.key for setting in settings))


def _print_field(console: Console, label: str, text: Any) -> None:
    console.print(f"  {label:<10} {text if text is not None else '(none)'}", soft_wrap=True, markup=False)


def _print_filter(console: Console, step: Step, name: str, before: Rows) -> None:
    """Print what a stage did to rows, which were ``before``."""
    title = f"[bold]{step.stage.title}[/bold]"
    for row in step.dropped:
        where = f"row {row['row']} of {escape(row['source'])}"
        console.print(f"{title}: dropped {where}, {row['reason']}: {escape(str(row['evidence']))}", soft_wrap=True)
        _print_settings(console, row["reason"])
    texts = {(row["source"], row["row"]): [row[key] for key in _STATEMENT] for row in before}
    for row in step.kept:
        where = f"row {row['row']} of {escape(row['source'])}"
        if row["id"] != name:
            console.print(f"{title}: kept {where}, as {row['id']}")
            continue
        is_rewritten = texts.get((row["source"], row["row"])) not in (None, [row[key] for key in _STATEMENT])
        console.print(f"{title}: kept {where}{', rewritten' if is_rewritten else ''}")
        if is_rewritten:
            _print_field(console, "statement", row["statement"])
            _print_field(console, "reference", row["answer"])
    for line in step.lines:
        console.print(f"  {line}", soft_wrap=True, markup=False)
    if not step.kept and not step.dropped:
        console.print(f"{title}: [dim]not reached[/dim]")


def _print_difficulty(console: Console, run: Run, step: Step, verifier: str, name: str) -> None:
    part, row = step.stage.part, step.decision_on(name)
    title = f"[bold]{part.replace('stage', 'stage ')}[/bold]"
    if row is None:
        console.print(f"{title}: [dim]not reached[/dim]")
        return
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
        console.print(
            f"  attempt {verdict['index']:<3} {verdict['outcome']:<9} {answer:<20} "
            f"{named}; {verdict['method']}; … {' '.join(text.split())[-60:]}",
            soft_wrap=True,
            markup=False,
        )


def _print_version(console: Console, run: Run, row: dict[str, Any]) -> None:
    version: Version = row["version"]
    made, again, why = version.made_on, "", None
    if version.origin == "refresh":
        run = refreshed_run(run, version)
        why = rows_of(run.place / "chosen", "why", row["problem"], "problem")
        made += f", refreshed with {escape(version.policy)}"
        again = f"; judged again ({why['why'][0]})" if why.height else "; not judged again"
    decision = "in the set" if row["published"] else "kept, left out for the set's size"
    decision = decision if row["keep"] else f"dropped, {row['reason']}"
    console.print(f"[bold]version {version.number} ({made})[/bold]: {decision}", soft_wrap=True)
    measured = f"no attempt of {row['policy']} could be judged, {row['measured_on']}"
    if row["pass_rate"] is not None:
        measured = (
            f"pass rate {row['pass_rate']:.3f} over {row['judged']} attempts of {row['policy']}, {row['measured_on']}, "
            f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
        )
    console.print(f"  {measured}{again}", soft_wrap=True, markup=False)
    if why is not None and why.height:
        _print_attempts(console, run, run.parts[-1], version.verifier, row["problem"])


def _explain_in_training(run: Path, beginning: str) -> None:
    from training.rollouts.attempt_log import attempt_tables, read_attempts, verdict_tables

    ids: set[str] = set()
    for table in attempt_tables(run, ["problem", "index"]):
        ids.update(table.filter(pl.col("problem").str.starts_with(beginning))["problem"])
    if len(ids) != 1:
        examples = f": {', '.join(sorted(ids)[:5])}; give more" if ids else ""
        raise StoreError(f"{beginning!r} begins {len(ids)} ids of attempted problems in {run}{examples}.")
    (problem,) = ids
    verdicts = pl.concat([VERDICT.to_frame(), *(table.filter(problem=problem) for table in verdict_tables(run))])
    columns = (*_NAME, "purpose", "step", "version", "newest_version", "tokens", "finish", "text")
    judged = read_attempts(run, columns, problems=[problem]).join(
        verdicts.select(*_NAME, "reference", "outcome", "answer", "method"), on=_NAME, how="left", maintain_order="left"
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
