"""The queue of disputed labels of a run: gathered when the set is published, shown and answered by `goldilocks review`.

DIR/curated/disputed/ holds the queue as parquet and as JSON lines; DIR/review.jsonl what people said, which the next
run applies. What a person has spoken on is no longer in the queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from rich.console import Console

from curation import review
from curation.records import ConfigError, StoreError
from curation.store import locked, read_table, write_parquet
from flows.cli.explain import find_id
from flows.run.run_folder import Done, Run, found, open_run
from flows.stages.base import open_judge

SHOWN = 20
"""Disputes that `goldilocks review` prints; all of them lie in DIR/curated/disputed."""


def disputes(run: Run, filters: Sequence[Done], decided: Sequence[Done]) -> pl.DataFrame:
    """All disputed labels of a finished run, in the `review.DISPUTE` schema."""
    stages = {done.name: done for done in filters}
    parts = [review.exact_conflicts(_table(stages["duplicates"], "dropped"))]
    if (near := stages.get("near_duplicates")) is not None:
        parts.append(review.near_conflicts(_table(near, "dropped"), _table(near, "members")))
    problems, last = _table(filters[-1], "kept"), decided[-1]
    parts.append(review.wrong_labels(problems, _table(last, "decisions")))
    verdicts = found(run, f"{run.stages[-1]}.verdicts", last.folder.name)
    if verdicts is not None:
        parts.append(review.doubtful_verdicts(problems, _table(verdicts, "verdicts")))
    return review.queue(parts, review.read_verdicts(run.folder))


def made_from(run: Run, decided: Sequence[Done]) -> Mapping[str, str]:
    """What the queue is made from besides the filters and the decisions."""
    verdicts = found(run, f"{run.stages[-1]}.verdicts", decided[-1].folder.name)
    said = review.digest(review.read_verdicts(run.folder))
    return {"verdicts": verdicts.manifest.digest if verdicts is not None else "", "said": said, "as": review.VERSION}


def write_disputes(queue: pl.DataFrame, folder: Path) -> None:
    """The queue as parquet, and line by line for readers."""
    write_parquet(folder / "disputed-00000-of-00001.parquet", queue)
    queue.write_ndjson(folder / "disputed.jsonl")


def published_counts(run: Run) -> dict[str, int]:
    """Disputes by kind in the published set; none where nothing is published."""
    published = _published(run)
    return review.counts(published) if published is not None else {}


def _published(run: Run) -> pl.DataFrame | None:
    """The queue of the published set; None where nothing is published."""
    files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
    return pl.concat([pl.read_parquet(file, glob=False) for file in files]) if files else None


def review_run(folder: Path, accept: str | None, reject: str | None, answer: str | None) -> None:
    """Print the queue, or record a person's verdict on one problem."""
    run = open_run(folder.absolute())
    if accept is not None and reject is not None:
        raise ConfigError("--accept and --reject: give one of them; each verdict is its own command.")
    if (accept is None) != (answer is None):
        raise ConfigError("--accept ID and --answer X belong together: which problem, and its right reference.")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if accept is None and reject is None:
        _print_queue(run, console)
        return
    name = find_id(run, accept or reject or "")
    if answer is not None:
        _check_answer(run, name, answer)
    with locked(run.folder):
        review.add_verdict(run.folder, review.Verdict(name, answer))
    said = f"accepted with the reference {answer}" if answer is not None else "rejected"
    console.print(f"{name}: {said}; the next `goldilocks run` into {run.folder} applies it.")


def _check_answer(run: Run, name: str, answer: str) -> None:
    """A reference that the verifier cannot judge against is refused at once."""
    read = _table_of(run, name)
    with open_judge(run) as judge:
        (check,) = judge.check([(answer, read["lang"][0])])
    if not check.ok:
        raise ConfigError(f"--answer {answer}: the verifier cannot judge against it ({check.why}); write it plainly.")


def _table_of(run: Run, name: str) -> pl.DataFrame:
    files = sorted((run.where("sources") / "kept").glob("*.parquet"))
    return pl.concat([pl.scan_parquet(file, glob=False).filter(pl.col("id") == name).collect() for file in files])


def _print_queue(run: Run, console: Console) -> None:
    published = _published(run)
    if published is None:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    said = review.read_verdicts(run.folder)
    waiting = review.queue([published], said)
    for row in waiting.head(SHOWN).iter_rows(named=True):
        console.print(f"{row['id']}  {review.KINDS[row['kind']]} ({', '.join(row['rows'])})")
        console.print(f"  statement   {' '.join(row['statement'].split())}")
        console.print(f"  references  {' | '.join(str(one) for one in row['references'])}")
        console.print(f"  evidence    {row['evidence']}")
    if waiting.height > SHOWN:
        console.print(
            f"… and {waiting.height - SHOWN:,} more: {run.folder / 'curated' / 'disputed' / 'disputed.jsonl'}"
        )
    waits = ", ".join(f"{kind} {count:,}" for kind, count in review.counts(waiting).items())
    console.print(
        f"{waiting.height:,} disputed{f' ({waits})' if waits else ''}; {len(said):,} problems settled by people"
    )


def _table(done: Done, table: str) -> pl.DataFrame:
    return read_table(done.folder, table)
