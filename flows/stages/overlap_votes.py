"""Votes of a model on problems near a benchmark's row: those that enough votes call the same leave; off by default.

The rules are those of `curation.filters.decontamination.opinions`; the scores are those that decontamination measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from curation.filters.decontamination.opinions import BALLOT, VOTES, decide_pairs, doubtful_pairs
from curation.filters.votes import UNREADABLE
from curation.prompts.overlaps import OVERLAPS as PROMPT
from curation.prompts.overlaps import overlap_request
from curation.records import DropReason, PromptRequest
from curation.sources import problems as sources
from curation.storage.stages import Shard, read_shard
from flows.run.lookup import rows_of
from flows.run.policies import model_title
from flows.run.run_folder import Run
from flows.run.stage import Stage, StageResult, StageRun, refusal_retries
from flows.stages.asking import PolicySession
from flows.stages.base import split_rows
from flows.stages.decontamination import DECONTAMINATION, benchmarks_of, overlap_settings, scores_folder, source_of

VERSION = "overlap-votes@2"
VOTES_TABLE = "votes"


def judge_overlaps(job: StageRun) -> StageResult:
    """Collect votes on problems that are near a benchmark's row, and drop what enough of them call the same."""
    settings, problems, stage = job.recipe.overlap_votes, job.problems.folder, job.stage.name
    overlap, scores = overlap_settings(job.recipe), scores_folder(job.run)
    scored = _scored_problems(job)

    def is_readable(text: str) -> bool:
        return BALLOT.read(text) != UNREADABLE

    with PolicySession.of_stage(job, stage, settings.model, settings.max_failed, PROMPT, is_readable) as session:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            places = read_shard(scored, "kept", index, ["source", "row"]).with_row_index("at")
            pairs = doubtful_pairs(read_shard(scores, "scores", index), overlap, settings.ask_from, settings.nearest)
            place = frame.select("id", "source", "row", kept=pl.int_range(pl.len())).join(places, on=["source", "row"])
            place = place.select("id", "kept", row=pl.col("at").cast(pl.Int64))
            pairs = pairs.join(place, on="row", maintain_order="left")
            pairs = pairs.with_columns(row=pl.col("kept").cast(pl.Int64)).drop("kept").sort("row", maintain_order=True)
            requests = _requests(job.run, frame, pairs)
            asked = session.ask(list({request.id: request for request in requests}.values()), settings.votes)
            names = pl.Series([request.id for request in requests], dtype=pl.String)
            votes = pairs.hstack(BALLOT.tally(names, asked)).match_to_schema(VOTES)
            same = dict(decide_pairs(votes, settings.threshold, settings.min_votes).iter_rows())
            reasons = [DropReason.CONTAMINATED if at in same else None for at in range(frame.height)]
            kept, dropped = split_rows(frame, stage, reasons, [same.get(at, "") for at in range(frame.height)])
            few = votes.filter(pl.col("readable") < settings.min_votes).height
            notes = {"asked": pairs.height, "too_few_votes": few}
            return Shard(frame.height, {"kept": kept, "dropped": dropped, VOTES_TABLE: votes}, notes=notes)

        settings_text = f"{session.policy.key} {settings.digest()} {overlap}"
        folder = job.open(f"{VERSION} {PROMPT.version}", settings_text, job.problems)
        return session.shard_by_shard(job, folder, work)


def _scored_problems(job: StageRun) -> Path:
    """Return the folder of the problems that decontamination scored: what the stage before it kept."""
    filters = job.results.filters
    at = next(place for place, result in enumerate(filters) if result.name == DECONTAMINATION.name)
    return filters[at - 1].folder


def _requests(run: Run, frame: pl.DataFrame, pairs: pl.DataFrame) -> list[PromptRequest]:
    """Return the request of each pair, in order."""
    texts = _benchmark_texts(run, pairs)
    lines = frame[pairs["row"]].select("statement", "lang").iter_rows()
    named = pairs.select("benchmark", "benchmark_row").iter_rows()
    return [
        overlap_request(text, texts[benchmark, row], lang)
        for (text, lang), (benchmark, row) in zip(lines, named, strict=True)
    ]


def _benchmark_texts(run: Run, pairs: pl.DataFrame) -> dict[tuple[str, int], str]:
    """Return the statements of the benchmark rows that are asked about."""
    wanted = set(pairs.select("benchmark", "benchmark_row").iter_rows())
    names = {name for name, _ in wanted}
    texts = {}
    for benchmark, home in benchmarks_of(run):
        if benchmark.name in names:
            for part in sources.read_source(source_of(benchmark), home, run.recipe.shard_rows):
                for row, text in part.select("row", "statement").iter_rows():
                    if (benchmark.name, row) in wanted:
                        texts[benchmark.name, row] = text
    return texts


def _is_enabled(run: Run) -> bool:
    return run.recipe.overlap_votes.model is not None and DECONTAMINATION.enabled(run)


def _describe(run: Run) -> Iterator[str]:
    settings = run.recipe.overlap_votes
    name = model_title(run.recipe, settings.model)
    yield (
        f"{OVERLAP_VOTES.name}: {name}, {settings.votes} votes on a problem and each of its {settings.nearest} nearest "
        + (f"rows of benchmarks with a score of {settings.ask_from:g} or more")
    )


def _explain(_run: Run, folder: Path, problem: str) -> Iterator[str]:
    for row in rows_of(folder, VOTES_TABLE, problem).iter_rows(named=True):
        said = ", ".join(f"{row[word]} {word}" for word in BALLOT.words if row[word])
        yield f"{'votes':<10} {said or '(none)'}, row {row['benchmark_row']} of {row['benchmark']}"


OVERLAP_VOTES = Stage(
    name="overlap_votes",
    title="Overlap by votes",
    folder="stages/07-overlap-votes",
    work=judge_overlaps,
    enabled=_is_enabled,
    asks="overlap_votes.model",
    describe=_describe,
    explain=_explain,
    retries=refusal_retries(),
    is_planned=False,  # not cheap
)
