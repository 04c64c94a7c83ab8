"""One problem's whole way through a run: every row of it, every stage, every attempt, with the evidence.

The stages are those of the line; what refreshes made of the problem since stands below, version by version.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape

from curation import premises
from curation.records import ATTEMPT, StoreError
from flows.cli import explain_code, explain_versions
from flows.publish.versions import newest_run
from flows.run.funnel import MEASURING
from flows.run.run_folder import ALL_TITLES, Run, found, open_run
from flows.stages.base import verifier_version
from flows.stages.difficulty_stages import made_attempts


def explain_problem(folder: Path, problem: str) -> None:
    """Print the way of one problem; ``problem`` is its id or an unambiguous beginning of it."""
    from flows.publish.curated_set import published_verifier  # which looks problems up by this module's `find_id`

    run = open_run(folder.absolute())
    console = Console(highlight=False)
    name = find_id(run, problem)
    read = _rows(run, "sources", "kept", name)
    for row in read.iter_rows(named=True):
        console.print(f"[bold]{name}[/bold]  row {row['row']} of {escape(row['source'])} ({escape(row['license'])})")
        _print_field(console, "statement", row["statement"])
        for option in row["choices"] or ():
            _print_field(console, "option", option)
        _print_field(console, "reference", row["answer"])
    for stage in run.filters[1:]:
        if stage not in (*MEASURING, "twins"):
            _print_filter(console, run, stage, name, read)
        if stage == "tests":
            explain_code.print_matrix(console, run, name)
    verifier = published_verifier(run) or verifier_version(run)
    asked = list(explain_code.twins_of(run, name)) or [name]
    for part in run.stages:
        for one in asked:
            if one != name:
                console.print(f"  asked as {one}")
            _print_difficulty(console, run, part, verifier, one)
    for one in asked:
        explain_versions.print_versions(console, run, one, _print_attempts)
    newest = newest_run(run.folder)
    curated = pl.concat([_rows(newest, "export", "kept", one) for one in asked])
    over = pl.concat([_rows(newest, "export", "dropped", one) for one in asked])
    for row in over.iter_rows(named=True):
        console.print(f"[bold]{ALL_TITLES['export']}[/bold]: dropped, {row['reason']}: {escape(row['evidence'])}")
    if not curated.is_empty():
        console.print(f"[bold]{ALL_TITLES['export']}[/bold]: in the curated set")


def find_id(run: Run, beginning: str) -> str:
    """The one id of the run that begins so.

    Raises:
        StoreError: none does, or several do.
    """
    files = sorted((run.where("sources") / "kept").glob("*.parquet"))
    matching: set[str] = set()
    for file in files:
        ids = pl.scan_parquet(file, glob=False).filter(pl.col("id").str.starts_with(beginning)).select("id").collect()
        matching.update(ids["id"])
    if not matching and (original := explain_code.original_of(run, beginning)) is not None:
        return original
    if not matching:
        raise StoreError(f"{run.folder} holds no problem whose id begins with {beginning!r}; ids stand in curated/.")
    if len(matching) > 1:
        shown = ", ".join(sorted(matching)[:5])
        raise StoreError(
            f"{beginning!r} begins {len(matching)} ids: {shown}{' …' if len(matching) > 5 else ''}; give more."
        )
    return matching.pop()


def _rows(run: Run, stage: str, table: str, name: str, verifier: str = "", column: str = "id") -> pl.DataFrame:
    files = sorted((run.where(stage, verifier) / table).glob("*.parquet"))
    parts = [pl.scan_parquet(file, glob=False).filter(pl.col(column) == name).collect() for file in files]
    return pl.concat(parts) if parts else pl.DataFrame({column: []}, schema={column: pl.String})


def _print_field(console: Console, label: str, text: Any) -> None:
    console.print(f"  {label:<10} {text if text is not None else '(none)'}", soft_wrap=True, markup=False)


def _print_filter(console: Console, run: Run, stage: str, name: str, read: pl.DataFrame) -> None:
    title = f"[bold]{ALL_TITLES[stage]}[/bold]"
    kept, dropped = _rows(run, stage, "kept", name), _rows(run, stage, "dropped", name)
    for row in dropped.iter_rows(named=True):
        where = f"row {row['row']} of {escape(row['source'])}"
        console.print(f"{title}: dropped {where}, {row['reason']}: {escape(str(row['evidence']))}", soft_wrap=True)
    for row in kept.iter_rows(named=True):
        changed = row["raw_statement"] is not None or row["raw_answer"] is not None
        rewritten = changed and stage in ("rewriting", "statements")
        console.print(f"{title}: kept row {row['row']} of {escape(row['source'])}{', rewritten' if rewritten else ''}")
        if stage == "review":
            _print_field(console, "reference", row["answer"])
        if rewritten:
            _print_field(console, "statement", row["statement"])
            _print_field(console, "reference", row["answer"])
    if stage == "premises":
        for row in _rows(run, stage, "votes", name, column="problem").iter_rows(named=True):
            votes = (f"{count} {vote.value}" for vote in premises.Vote if (count := row[vote.value]))
            _print_field(console, "votes", ", ".join(votes) or None)
    if stage == "rewriting":
        for row in _rows(run, stage, "rewritings", name).filter(~pl.col("accepted")).iter_rows(named=True):
            _print_field(console, "refused", row["why"])
    if kept.is_empty() and dropped.is_empty() and not read.is_empty():
        console.print(f"{title}: [dim]not reached[/dim]")


def _print_difficulty(console: Console, run: Run, part: str, verifier: str, name: str) -> None:
    decisions = _rows(run, f"{part}.decisions", "decisions", name, verifier, "problem")
    title = f"[bold]{part.replace('stage', 'stage ')}[/bold]"
    if decisions.is_empty():
        console.print(f"{title}: [dim]not reached[/dim]")
        return
    row = decisions.row(0, named=True)
    fate = "kept" if row["keep"] else f"dropped, {row['reason']}"
    console.print(f"{title} ({escape(row['policy'])}, {verifier}): {fate}: {escape(row['evidence'])}", soft_wrap=True)
    if row["pass_rate"] is not None:
        failed = f", {row['timeout']} timed out, {row['broken']} broken" if row["timeout"] or row["broken"] else ""
        interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
        console.print(f"  pass rate  {row['pass_rate']:.3f} over {row['judged']} attempts, {interval}{failed}")
    _print_attempts(console, run, part, verifier, name)


def _print_attempts(console: Console, run: Run, part: str, verifier: str, name: str) -> None:
    verdicts = _rows(run, f"{part}.verdicts", "verdicts", name, verifier, "problem")
    made = found(run, f"{part}.attempts")
    held = made_attempts(run, made).read([name]) if made is not None else pl.DataFrame(schema=ATTEMPT)
    ends = {attempt["index"]: _end(attempt) for attempt in held.iter_rows(named=True)}
    seen: Counter[int | None] = Counter(verdicts["answer_class"].to_list())
    for verdict in verdicts.iter_rows(named=True):
        group = verdict["answer_class"]
        votes = f"class {group}, {seen[group]} votes" if group is not None else "no class"
        console.print(
            f"  attempt {verdict['index']:<3} {verdict['outcome']:<9} {_brief(verdict['answer']):<20} "
            f"{votes}; {verdict['how']}; … {ends.get(verdict['index'], '')}",
            soft_wrap=True,
            markup=False,
        )


def _brief(answer: str | None) -> str:
    """An answer on one line; of a program, its language and its size."""
    if answer is None or not answer.startswith("```"):
        return str(answer)
    lines = answer.split("\n")
    return f"{lines[0].strip('`')}, {len(lines) - 2} lines"


def _end(attempt: dict[str, Any]) -> str:
    """The last words of a response."""
    return " ".join((attempt["text"] or attempt["answer"] or "").split())[-60:]
