"""Apply people's verdicts on disputed labels, and keep references that the verifier can judge against."""

from __future__ import annotations

from collections.abc import Sequence

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
from flows.stages.judging import open_judge, verifier_version

_Defect = tuple[str | None, str]
_UNVERIFIABLE, _FAILED = DropReason.UNVERIFIABLE_ANSWER.value, DropReason.VERIFIER_FAILED.value
_UNPROVEN = DropReason.UNPROVEN_REWRITING.value
VERSION = "references@1"


def check_references(job: StageRun) -> StageResult:
    """Drop unusable references with reasons; those usable without layout wait for a person.

    Later runs check shards again in which the verifier failed.
    """
    problems = job.problems.folder
    made = job.run.made_sources
    folder = job.open(f"{VERSION} {verifier_version(job.run)}", job.recipe.verify.digest(), job.problems)
    if (result := job.finished(folder)) is not None:
        return result
    round_number = retries.last_round(folder.folder)
    with open_judge(job.run, round_number) as judge:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            defects = _check(judge, frame, made)
            reasons, evidence = [reason for reason, _ in defects], [why for _, why in defects]
            kept, dropped = split_rows(frame, REFERENCES.name, reasons, evidence)
            notes = retries.failure_notes(reasons.count(_FAILED), round_number)
            return Shard(frame.height, {"kept": kept, "dropped": dropped}, notes=notes)

        return job.shard_by_shard(folder, work)


def _check(judge: Judge, problems: pl.DataFrame, made: Sequence[str]) -> list[_Defect]:
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
            why = f"{defects[place][1]}; without its layout it would be {text}, which is not proven to be the same"
            defects[place] = _UNPROVEN, why
    if made and problems.height:
        judged_by = pl.col("meta").str.json_path_match("$.judged_by")
        is_own = (pl.col("source").is_in(made) & (judged_by == BY_GENERATOR)).fill_null(False)
        for place in problems.select(is_own.arg_true()).to_series():
            if scorers[place] is None:
                why = f"the verifier cannot judge by the rules of its generator: {problems['answer'][place]}"
                defects[place] = _UNVERIFIABLE, why
    return defects


REFERENCES = Stage(
    name="references",
    title="Reference check",
    folder="stages/04-references",
    work=check_references,
    runs_anywhere=True,
)


def apply_reviews(job: StageRun) -> StageResult:
    """Apply the verdicts of people."""
    verdicts = verdicts_of_people(job.run)
    folder = job.open(review.VERSION, review.digest(verdicts), job.problems)
    return job.filter(folder, lambda frame, _: review.apply_verdicts(frame, verdicts))


REVIEW = Stage(
    name="review",
    title="Review by people",
    folder="stages/03-review",
    work=apply_reviews,
    enabled=lambda run: bool(verdicts_of_people(run)),
    comes_later=True,
)
