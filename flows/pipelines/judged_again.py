"""Judge a run's stored attempts again and compare the results.

Invariants: nothing is written in the run's folder, and no model is asked. Failed verdicts are only counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from curation.difficulty.pass_rates import has_failed
from curation.policies.excerpt import excerpt
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import in_order, scan_table
from curation.storage.stages import read_shard, write_parquet
from flows.publish.receipts import verdicts_digest
from flows.publish.versions import Version, digest_of, gather_decisions, scan_decisions
from flows.run.pipeline import read_results, run_stage
from flows.run.run_folder import Run
from flows.run.stage import Results, StageResult, shard_counts
from flows.stages.attempts import attempt_store, attempts_of, judge_rows, measured_on
from flows.stages.decisions import decisions_of as decisions_stage
from flows.stages.export import EXPORT
from flows.stages.judging import open_judge
from flows.stages.questions import doubtful_verdicts_of
from flows.stages.translation import TRANSLATION
from flows.stages.variants import VARIANTS

_MADE_ANEW = (
    "decisions",
    "curated",
    "public",
    "receipt",
    "stages",
    "history.jsonl",
    "metrics.jsonl",
    ".lock",
)
_ONE = ["problem", "index"]


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """The results of judging again.

    Args:
        results: of stages, with new decisions and export.
        verdicts: number compared, without ``failed`` ones.
        differing: a sentence per changed verdict and decision.
    """

    digests: dict[str, str]
    results: Results
    verdicts: int
    failed: int
    decisions: int
    differing: tuple[str, ...]


@contextmanager
def judged_again(run: Run, filters: Results, verifier: str, version: Version) -> Iterator[JudgedAgain]:
    """Judge and decide again, in a temporary folder during the block.

    Args:
        verifier: the stored verdicts' version, which must be current.
    """
    votes = [stage for part in run.parts if (stage := doubtful_verdicts_of(part)).enabled(run)]
    stored = read_results(run, [*(attempts_of(part) for part in run.parts), *votes], verifier)
    digests, sentences, count, failed = dict[str, str](), list[str](), 0, 0
    scratch = ScratchFolder("receipt")
    try:
        for part in run.parts:
            place = Path(scratch.path) / f"verdicts of {part}"
            for differing, judged, broken in _verdicts_again(run, filters, stored[attempts_of(part)], place):
                sentences += differing
                count, failed = count + judged - broken, failed + broken
            opinions = stored.get(doubtful_verdicts_of(part))
            folder = place if opinions is None else opinions.folder
            digests[f"verdicts.{part}"] = verdicts_digest(scan_table(folder, "verdicts"))
        beside = replace(run, folder=_linked(run, Path(scratch.path)))
        results = filters.plus(*stored)
        for part in run.parts:
            results = results.plus(run_stage(decisions_stage(part), beside, results))
        additions = [stage for stage in (TRANSLATION, VARIANTS) if stage.enabled(run)]
        results = results.plus(*read_results(run, additions))  # as they are: no model is asked
        exported = run_stage(EXPORT, beside, results)
        table = gather_decisions(results.decisions[-1], exported, measured_on(run, run.parts[-1], verifier))
        sentences += _differing_decisions(scan_decisions(run.folder, version.number), table)
        digests["decisions"] = digest_of(table)
        decided = sum(shard_counts(results.decisions[-1].folder, "decisions"))
        yield JudgedAgain(digests, results.plus(exported), count, failed, decided, tuple(sentences))
    finally:
        scratch.remove()


def _linked(run: Run, folder: Path) -> Path:
    for entry in run.folder.iterdir():
        if entry.name not in _MADE_ANEW:
            (folder / entry.name).symlink_to(entry)
    (folder / "stages").mkdir()
    for entry in (run.folder / "stages").iterdir():
        if entry.name != Path(EXPORT.folder).name:
            (folder / "stages" / entry.name).symlink_to(entry)
    return folder


def _verdicts_again(
    run: Run, filters: Results, stored: StageResult, place: Path
) -> Iterator[tuple[list[str], int, int]]:
    """Write new verdicts; yield changes as sentences, and numbers of comparable and failed ones, by shard."""
    store, problems = attempt_store(run, stored), filters.problems.folder
    with open_judge(run) as judge:
        for index in range(len(shard_counts(problems))):
            frame = read_shard(problems, "kept", index)
            before = read_shard(stored.folder, "verdicts", index)
            rows = store.read(frame["id"].to_list()).join(before, on=_ONE, how="semi", maintain_order="left")
            after = judge_rows(judge, frame, rows)
            differing, failed = _differing_verdicts(before, after)
            settled = after.join(failed, on=_ONE, how="anti")
            kept = before.join(failed, on=_ONE, how="semi").select(settled.columns)
            write_parquet(place / "verdicts" / f"{index:05}.parquet", pl.concat([settled, kept]))
            yield differing, settled.height + kept.height, failed.height


def _differing_verdicts(before: pl.DataFrame, after: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    """Return a sentence per changed verdict, and incomparable (problem, index) pairs.

    A failed verdict excludes its problem, as answer classes are numbered otherwise.
    """
    both = before.join(after, on=_ONE, how="left", suffix="_now", maintain_order="left")
    failing = pl.concat([before.filter(has_failed()), after.filter(has_failed())])
    failed = both.select(_ONE).join(failing.select("problem").unique(), on="problem", how="semi")
    compared = both.join(failed, on=_ONE, how="anti")
    columns = ("reference", "outcome", "answer", "answer_class")
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in columns)
    sentences = []
    for row in compared.filter(differs).iter_rows(named=True):
        now = "is not in the store" if row["verifier_now"] is None else f"comes out {_verdict(row, '_now')}"
        sentences.append(f"problem {row['problem']}, attempt {row['index']}: was judged {_verdict(row, '')}, {now}.")
    return sentences, failed


def _verdict(row: dict[str, object], side: str) -> str:
    answer, reference = row[f"answer{side}"], row[f"reference{side}"]
    told = "no answer" if answer is None else f"answer {excerpt(str(answer), 60)}"
    return f"{row[f'outcome{side}']} ({told}" + (f" against {excerpt(str(reference), 60)})" if reference else ")")


def _differing_decisions(stored: pl.LazyFrame, table: pl.LazyFrame) -> Iterator[str]:
    columns = ("keep", "reason", "judged", "correct", "pass_rate", "policy", "published")
    for was, now in in_order(*(side.select("problem", *columns) for side in (stored, table))):
        both = was.join(now, on="problem", how="full", coalesce=True, suffix="_now").sort("problem")
        differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in columns)
        for row in both.filter(differs).iter_rows(named=True):
            was_said, comes_out = _decision(row, ""), _decision(row, "_now")
            yield f"problem {row['problem']}: the version says {was_said}, {comes_out} comes out."


def _decision(row: dict[str, object], side: str) -> str:
    if row[f"keep{side}"] is None:
        return "nothing"
    word = "kept" if row[f"published{side}"] else (row[f"reason{side}"] or "over_quota")
    return f"{word} with {row[f'correct{side}']} of {row[f'judged{side}']} correct"
