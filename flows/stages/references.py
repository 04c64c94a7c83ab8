"""Apply people's verdicts on disputed labels, and keep references that the verifier can judge against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import polars as pl

from curation.filters.statements.cleaning import without_layout
from curation.publish import review
from curation.records import DropReason
from curation.storage.stages import Shard, read_shard
from curation.verify.generator_scores import BY_GENERATOR, scorer_of
from curation.verify.math_judge import Judge
from flows.run import retries
from flows.run.run_folder import verdicts_of_people
from flows.run.stage import Stage, StageResult, StageRun, split_rows
from flows.stages.judging import open_judge

_Defect = tuple[str | None, str]
_UNVERIFIABLE, _FAILED = DropReason.UNVERIFIABLE_ANSWER.value, DropReason.VERIFIER_FAILED.value
_UNPROVEN = DropReason.UNPROVEN_REWRITING.value
VERSION = "references@1"
_ROW, _DEFECT = ("source", "row"), ("reason", "evidence")


def check_references(job: StageRun) -> StageResult:
    """Drop unusable references with reasons; those usable without layout wait for a person.

    Later runs check again where the verifier failed.
    """
    problems = job.problems.folder
    made = [source.name for source in job.recipe.read_sources if source.is_made]
    with open_judge(job.run) as judge:
        folder = job.open(f"{VERSION} {judge.version}", job.recipe.verify.digest(), job.problems)

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            return _shard(frame, _check(judge, frame, made))

        @contextmanager
        def again(round_number: int) -> Iterator[Callable[[int], Shard]]:
            with open_judge(job.run, round_number) as patient:

                def work_again(index: int) -> Shard:
                    frame, dropped = (read_shard(place, table, index) for place, table in tables)
                    return _shard(frame, _check_failed(patient, frame, dropped), round_number)

                yield work_again

        tables = ((problems, "kept"), (folder.folder, "dropped"))
        return retries.retry_failed(job, folder, partial(job.shard_by_shard, folder, work), again)


def _check(judge: Judge, problems: pl.DataFrame, made: Sequence[str] = ()) -> list[_Defect]:
    """Return each problem's reason, None if usable, and evidence."""
    scorers = [scorer_of(meta) for meta in problems["meta"]]
    rows = problems.select("answer", "lang", "statement").iter_rows()
    checks = judge.check((*row, scorer) for row, scorer in zip(rows, scorers, strict=True))
    defects: list[_Defect] = [
        (None if check.usable else _UNVERIFIABLE if check.failure is None else _FAILED, f"{check.reason}: {answer}")
        for check, answer in zip(checks, problems["answer"], strict=True)
    ]
    unusable = [
        place for place, (reason, _) in enumerate(defects) if reason == _UNVERIFIABLE and scorers[place] is None
    ]
    rewritten = without_layout(problems["answer"].gather(unusable))
    changed = [
        (place, text) for place, text in zip(unusable, rewritten, strict=True) if text != problems["answer"][place]
    ]
    again = judge.check((text, problems["lang"][place], problems["statement"][place]) for place, text in changed)
    for (place, text), check in zip(changed, again, strict=True):
        if check.usable:
            why = f"{defects[place][1]}; without its layout it would be {text}, which nothing proves to be the same"
            defects[place] = _UNPROVEN, why
    if made and problems.height:
        judged_by = pl.col("meta").str.json_path_match("$.judged_by")
        is_own = (pl.col("source").is_in(made) & (judged_by == BY_GENERATOR)).fill_null(False)
        for place in problems.select(is_own.arg_true()).to_series():
            if scorers[place] is None:
                why = f"the verifier cannot judge by the rules of its generator: {problems['answer'][place]}"
                defects[place] = _UNVERIFIABLE, why
    return defects


def _check_failed(judge: Judge, problems: pl.DataFrame, dropped: pl.DataFrame) -> list[_Defect]:
    before = {(source, row): (reason, why) for source, row, reason, why in dropped.select(*_ROW, *_DEFECT).iter_rows()}
    defects: list[_Defect] = [before.get(row, (None, "")) for row in problems.select(_ROW).iter_rows()]
    failed = [place for place, (reason, _) in enumerate(defects) if reason == _FAILED]
    for place, defect in zip(failed, _check(judge, problems[failed]), strict=True):
        defects[place] = defect
    return defects


def _shard(problems: pl.DataFrame, defects: Sequence[_Defect], round_number: int = 0) -> Shard:
    reasons, evidence = [reason for reason, _ in defects], [why for _, why in defects]
    kept, dropped = split_rows(problems, REFERENCES.name, reasons, evidence)
    notes = retries.failure_notes(reasons.count(_FAILED), round_number)
    return Shard(problems.height, {"kept": kept, "dropped": dropped}, notes=notes)


REFERENCES = Stage(
    name="references",
    title="Reference check",
    folder="stages/04-references",
    work=check_references,
    runs_anywhere=True,
)


def apply_reviews(job: StageRun) -> StageResult:
    """Apply the verdicts of people."""
    verdicts, problems = verdicts_of_people(job.run), job.problems.folder

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        kept, dropped = review.apply_verdicts(frame, verdicts)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    return job.shard_by_shard(job.open(review.VERSION, review.digest(verdicts), job.problems), work)


REVIEW = Stage(
    name="review",
    title="Review by people",
    folder="stages/03-review",
    work=apply_reviews,
    enabled=lambda run: bool(verdicts_of_people(run)),
    comes_later=True,
)
