"""The stages before any attempt is made, as bare functions: what is read, which room decides, what is written.

Each takes the run and the stages before it, and returns a `Done`. Nothing here decides anything about a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import polars as pl

from curation import contamination, duplicates, near_duplicates, review, sources, statements
from curation.config import Benchmark, ProblemColumns, Source
from curation.contamination.overlap import Index, Overlap
from curation.records import PROBLEM, DropReason, Outcome
from curation.store import Shard, Stage, read_shard, read_table
from flows.run.run_folder import Done, Run, drive, inputs
from flows.stages.base import open_judge, shard_by_shard, split_rows, verifier_version

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


def apply_reviews(run: Run, before: Done) -> Done:
    """What people said of disputed labels: accepted references go on, rejected problems leave."""
    verdicts = review.read_verdicts(run.folder)

    def work(index: int) -> Shard:
        problems = read_shard(before.folder, "kept", index)
        kept, dropped = review.apply_verdicts(problems, verdicts)
        return Shard(problems.height, {"kept": kept, "dropped": dropped})

    stage = Stage(run.where("review"), "review", review.VERSION, review.digest(verdicts), inputs(before))
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


def find_near_duplicates(run: Run, before: Done) -> Done:
    """The same problem in slightly other words: one row stays, the first that a person accepted, else the first."""
    settings = run.recipe.near_duplicates
    accepted = [name for name, verdict in review.read_verdicts(run.folder).items() if verdict.answer is not None]
    made_by = f"{settings.digest()} {verifier_version(run)} {run.recipe.verify.digest()} {sorted(accepted)}"
    stage = Stage(run.where("near_duplicates"), "near_duplicates", near_duplicates.VERSION, made_by, inputs(before))
    if (manifest := stage.manifest()) is not None:
        return Done(stage.name, stage.folder, manifest, reused=True)
    rows = read_table(before.folder, "kept", ["id", "source", "row", "statement", "answer", "lang"])
    members = near_duplicates.near_duplicates(
        rows.with_columns(verified=pl.col("id").is_in(accepted)) if rows.height else PROBLEM.to_frame(),
        [source.name for source in run.recipe.sources],
        threshold=settings.threshold,
        figures_agree=settings.figures_agree,
    )
    pairs = near_duplicates.reference_pairs(members)
    with open_judge(run) as judge:
        outcomes = list(judge.same(pairs)) if pairs else []
    equal = {pair: outcome is Outcome.CORRECT for pair, outcome in zip(pairs, outcomes, strict=True)}

    def work(index: int) -> Shard:
        problems = read_shard(before.folder, "kept", index)
        parted = near_duplicates.drop_near_duplicates(problems, members, equal, accepted)
        dropped = pl.concat([parted.duplicates, parted.disputed])
        named = members.join(problems, on=["source", "row"], how="semi")
        return Shard(problems.height, {"kept": parted.kept, "dropped": dropped, "members": named})

    return shard_by_shard(stage, before, work)


def find_contamination(run: Run, before: Done) -> Done:
    """Problems that overlap with the recipe's benchmarks leave; every hit is kept beside them."""
    settings = run.recipe.contamination
    named = [(benchmark, as_source(benchmark)) for benchmark in settings.against]
    digests = {benchmark.name: sources.source_digest(source, run.recipe_folder) for benchmark, source in named}
    made_from = inputs(before, **{f"benchmark {name}": digest for name, digest in digests.items()})
    stage = Stage(run.where("contamination"), "contamination", contamination.VERSION, settings.digest(), made_from)
    if (manifest := stage.manifest()) is not None:
        return Done(stage.name, stage.folder, manifest, reused=True)
    benchmarks = pl.concat(
        frame.select("row", "statement", benchmark=pl.lit(benchmark.name))
        for benchmark, source in named
        for frame in sources.read_source(source, run.recipe_folder, run.recipe.shard_rows)
    )
    overlap = Overlap(settings.methods, settings.ngram, settings.whole, settings.similarity, settings.cosine)
    index = Index(benchmarks, overlap)

    def work(number: int) -> Shard:
        problems = read_shard(before.folder, "kept", number)
        hits = index.hits(problems["statement"])
        kept, dropped = contamination.drop_contaminated(problems, hits)
        return Shard(problems.height, {"kept": kept, "dropped": dropped, "hits": contamination.named(problems, hits)})

    return shard_by_shard(stage, before, work)


def as_source(benchmark: Benchmark) -> Source:
    """A benchmark as a source of statements alone."""
    return Source(
        name=benchmark.name,
        kind=benchmark.kind,
        path=benchmark.path,
        subset=benchmark.subset,
        split=benchmark.split,
        revision=benchmark.revision,
        license=benchmark.license,
        columns=ProblemColumns(statement=benchmark.field),
    )


def _all_kept(frame: pl.DataFrame) -> Shard:
    return Shard(frame.height, {"kept": frame})
