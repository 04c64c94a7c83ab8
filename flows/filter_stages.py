"""The stages before any attempt is made, as bare functions: what is read, which room decides, what is written.

Each takes the run and the stages before it, and returns a `Done`. Nothing here decides anything about a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import polars as pl

from curation import duplicates, sources, statements
from curation.records import DropReason, Outcome
from curation.store import Shard, Stage, read_shard, read_table
from flows.run_folder import Done, Run, drive, inputs
from flows.stages import open_judge, shard_by_shard, split_rows, verifier_version

Work = Callable[[], Shard]


def read_sources(run: Run) -> Done:
    """Rows of all sources as Problems."""
    recipe = run.recipe
    digests = {source.name: sources.source_digest(source, run.recipe_folder) for source in recipe.sources}
    settings = "-".join([*(source.digest() for source in recipe.sources), str(recipe.shard_rows)])
    stage = Stage(run.where("sources"), "sources", sources.VERSION, settings, digests)

    def shards() -> Iterator[tuple[int, Work]]:
        for source in recipe.sources:
            for frame in sources.read_source(source, run.recipe_folder, recipe.shard_rows):
                yield frame.height, partial(_all_kept, frame)

    return drive(stage, shards(), total=None)


def filter_statements(run: Run, before: Done) -> Done:
    """Format filter; multiple choice becomes an open question."""
    settings = run.recipe.statements

    def work(index: int) -> Shard:
        problems = read_shard(before.folder, "kept", index)
        parts = statements.filter_statements(problems, settings)
        return Shard(problems.height, {"kept": parts.kept, "dropped": parts.dropped})

    stage = Stage(run.where("statements"), "statements", statements.VERSION, settings.digest(), inputs(before))
    return shard_by_shard(stage, before, work)


def check_references(run: Run, before: Done) -> Done:
    """Every reference must be one that the verifier can judge against, before any attempt is made."""
    settings = run.recipe.verify.digest()
    with open_judge(run) as judge:

        def work(index: int) -> Shard:
            problems = read_shard(before.folder, "kept", index)
            checks = list(judge.check(problems.select("answer", "lang").iter_rows()))
            reasons = [
                None if check.ok else DropReason.VERIFIER_FAILED if check.failed else DropReason.UNVERIFIABLE_ANSWER
                for check in checks
            ]
            evidence = [f"{check.why}: {answer}" for check, answer in zip(checks, problems["answer"], strict=True)]
            kept, dropped = split_rows(problems, "references", reasons, evidence)
            return Shard(problems.height, {"kept": kept, "dropped": dropped})

        stage = Stage(run.where("references"), "references", judge.version, settings, inputs(before))
        return shard_by_shard(stage, before, work)


def find_duplicates(run: Run, before: Done) -> Done:
    """The same problem twice: the first stays; copies with different references all go."""
    settings = f"{verifier_version(run)} {run.recipe.verify.digest()}"  # it says whether two references are equal
    stage = Stage(run.where("duplicates"), "duplicates", duplicates.VERSION, settings, inputs(before))
    if (manifest := stage.manifest()) is not None:
        return Done(stage.name, stage.folder, manifest, reused=True)
    again = duplicates.repeats(read_table(before.folder, "kept", ["id", "source", "row", "answer"]))
    conflicts = _conflicts(run, again)

    def work(index: int) -> Shard:
        problems = read_shard(before.folder, "kept", index)
        kept, dropped = duplicates.drop_repeats(problems, again, conflicts)
        return Shard(problems.height, {"kept": kept, "dropped": dropped})

    return shard_by_shard(stage, before, work)


def _conflicts(run: Run, again: duplicates.Repeats) -> dict[str, str]:
    pairs = again.pairs()
    if not pairs:
        return {}
    with open_judge(run) as judge:
        outcomes = list(judge.same((reference, other) for _, reference, other in pairs))
    return {
        name: "references: " + " | ".join(again.references[name])
        for (name, _, _), outcome in zip(pairs, outcomes, strict=True)
        if outcome is not Outcome.CORRECT
    }


def _all_kept(frame: pl.DataFrame) -> Shard:
    return Shard(frame.height, {"kept": frame})
