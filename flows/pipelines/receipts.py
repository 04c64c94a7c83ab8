"""Verify a set's receipt (`goldilocks verify receipt`), or measure it (`goldilocks publish DIR --receipt`).

Verification recomputes each figure that needs no GPU. It writes nothing in the run's folder and asks no model; failed
verdicts are only counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version as package_version
from pathlib import Path

import polars as pl

from curation.difficulty.pass_rates import has_failed
from curation.policies.excerpt import excerpt
from curation.publish import receipts, review
from curation.publish.receipts import Figure, Needs, Receipt
from curation.records import ConfigError, SourceError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import in_order, scan_table
from curation.storage.stages import read_shard, table_files, write_parquet
from flows.pipelines.planted_defects import planted_figures
from flows.pipelines.run_tables import filters_of
from flows.publish import receipts as set_receipts
from flows.publish.curated_set import (
    published_folder,
    published_mark,
    renew_receipt,
    require_unaltered,
)
from flows.publish.receipts import OF_FILES
from flows.publish.versions import Version, digest_of, gather_decisions, latest, newest_run, scan_decisions
from flows.run.pipeline import read_results, run_stage
from flows.run.run_folder import Run, verdicts_of_people
from flows.run.stage import Results, StageResult, shard_counts
from flows.run.training import read_run
from flows.stages.attempts import attempt_store, attempts_of, judge_rows, measured_on
from flows.stages.decisions import decisions_of
from flows.stages.export import EXPORT, PUBLISHED
from flows.stages.judging import open_judge, verifier_version
from flows.stages.questions import VARIANTS, doubtful_verdicts_of
from flows.stages.translation import TRANSLATION

_MADE_ANEW = ("decisions", "curated", "public", "receipt", "stages", "history.jsonl", "metrics.jsonl", ".lock")
_ONE = ["problem", "index"]
_JUDGED = [*_ONE, "reference", "outcome", "answer", "answer_class"]
_DECIDED = ["problem", "keep", "reason", "judged", "correct", "pass_rate", "policy", "published"]


@dataclass(slots=True)
class Verification:
    """A receipt's differences as sentences; what was computed again, and what was not, with reasons."""

    folder: Path
    differing: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Return whether nothing differs."""
        return not self.differing


def read_published(folder: Path) -> tuple[Run, Version, Results]:
    """Return a finished run in the state of its newest version, with its results.

    Raises:
        StoreError: it has no published set.
    """
    run = newest_run(folder.absolute())
    verifier, version = published_mark(run).get("verifier"), latest(run.folder)
    if verifier is None or version is None:
        raise StoreError(f"{folder} holds no finished run yet; finish it with `goldilocks run`.")
    later = [*map(decisions_of, run.parts), *(stage for stage in PUBLISHED if stage.enabled(run))]
    return run, version, read_results(run, filters_of(run)).plus(*read_results(run, later, verifier))


def verify_receipt(place: Path, *, quick: bool) -> Verification:
    """Recompute the figures of a set's receipt.

    Args:
        place: folder of a set or its run.
        quick: plant no defects again.

    Raises:
        SourceError: the receipt is missing or unreadable.
    """
    folder = published_folder(place)
    stated, found = receipts.read_receipt(folder), Verification(folder)
    _check_itself(stated, folder, found)
    try:
        own = set_receipts.with_contents(stated, folder)
    except (pl.exceptions.PolarsError, OSError) as error:
        first = next(iter(str(error).splitlines()), "")
        found.differing += [*_file_sentences(stated, receipts.file_digests(folder)), f"data/ cannot be read ({first})."]
        return found
    _check_contents(stated, own, found)
    home = folder.absolute().parent
    if folder.name == "curated" and (home / "run.json").is_file():
        _check_run(stated, home, folder, found, quick=quick)
    else:
        _check_alone(stated, own, found)
    return found


def _check_itself(stated: Receipt, folder: Path, found: Verification) -> None:
    if (folder / receipts.FILE).read_text(encoding="utf-8") != stated.as_json():
        found.differing.append(f"{receipts.FILE}: its content does not match its own digest; it was edited.")
    try:
        page = (folder / receipts.PAGE).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        found.differing.append(f"{receipts.PAGE} is missing or cannot be read.")
        return
    wanted = receipts.page(stated).splitlines()
    lacking = [f"lacks a line of {receipts.FILE}: {line}" for line in wanted if line not in page]
    added = [f"has a line that {receipts.FILE} lacks: {line}" for line in page if line not in wanted]
    found.differing += [f"{receipts.PAGE} {text}" for text in (*lacking, *added) if "Its own digest" not in text]


def _file_sentences(stated: Receipt, files: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*stated.files, *files}):
        if name not in files:
            yield f"{name} is in the receipt and not in the set."
        elif name not in stated.files:
            yield f"{name} is in the set and not in the receipt."
        elif files[name] != stated.files[name]:
            yield f"{name} is not the file in the receipt: its SHA-256 differs."


def _check_contents(stated: Receipt, own: Receipt, found: Verification) -> None:
    found.differing += _file_sentences(stated, own.files)
    if own.rows != stated.rows:
        found.differing.append(f"data/: {stated.rows:,} problems are stated, {own.rows:,} are in the set.")
    else:
        altered = {name for name, _ in stated.columns.items() ^ own.columns.items()}
        found.differing += [f"data/: column {name} does not hold what was published." for name in sorted(altered)]
    names = {figure.name for figure in (*stated.figures, *own.figures) if figure.section in OF_FILES}
    found.differing += receipts.differing_figures(stated, own, names)
    found.checked.append(f"{len(stated.files):,} files, {len(stated.columns):,} columns, {len(names):,} licences")


def _check_alone(stated: Receipt, own: Receipt, found: Verification) -> None:
    rules = {figure.name for figure in stated.figures if figure.section == "precision"}
    here = package_version("goldilocks-rl")
    if stated.goldilocks == here:
        computed = replace(own, figures=tuple(set_receipts.precision_figures()))
        found.differing += receipts.differing_figures(stated, computed, rules)
        found.checked.append(f"precision of {len(rules):,} rules")
    elif rules:
        found.unchecked.append(
            f"precision of {len(rules):,} rules: measured with Goldilocks {stated.goldilocks}, this is {here}"
        )
    needed = {Needs.RUN: "the run's folder", Needs.TRAINING: "training"}
    found.unchecked += [
        f"{figure.name}: it takes {needed[figure.needs]}"
        for figure in stated.figures
        if figure.needs in needed and figure.value is not None
    ]


def _check_run(stated: Receipt, home: Path, folder: Path, found: Verification, *, quick: bool) -> None:
    run, version, stored = read_published(home)
    mark, verifier, today = published_mark(run), stored.decisions[-1].folder.name, verifier_version(run)
    if mark and mark["disputed"].get("verdicts_of_people") != review.digest(verdicts_of_people(run)):
        found.unchecked.append(
            "people's verdicts since the set was published: they are applied here, so decisions may differ; "
            "`goldilocks run` publishes them"
        )
    measured = [figure for figure in stated.figures if figure.section not in OF_FILES and figure.value is not None]
    is_planted = any(figure.section == "planted" for figure in measured)
    with ExitStack() as stack:
        if version.origin == "run" and today == verifier:
            results, digests = stack.enter_context(_judged_again(run, version, stored, found))
        else:
            why = (
                "it is a refreshed version; only the files of its folder are compared"
                if version.origin != "run"
                else f"verdicts are of {verifier}, and this Goldilocks has {today}; `goldilocks run` "
                "judges again, and `goldilocks diff` shows what changes"
            )
            found.unchecked.append(f"digests: attempts were not judged again, {why}")
            decided = {"decisions": digest_of(scan_decisions(run.folder, version.number))}
            results, digests = stored, set_receipts.stored_digests(run, stored, version) | decided
        planted = planted_figures(run, stored) if is_planted and not quick else None
        computed = set_receipts.make_receipt(run, results, version, folder, digests, planted)
        found.differing += _differing_rows(folder, results[EXPORT].folder)
    names = {figure.name for figure in (*stated.figures, *computed.figures) if figure.section not in OF_FILES}
    found.differing += receipts.differing_figures(stated, computed, names)
    training = [figure.name for figure in measured if figure.needs is Needs.TRAINING]
    found.checked.append(f"{len(measured) - len(training):,} figures, {stated.rows:,} problems")
    found.unchecked += [f"{name}: compared with the run's copy; computing it needs training" for name in training]
    if is_planted and planted is None:
        found.unchecked.append("planted defects: compared with the run's copy; without --quick they are planted again")
    for name in ("name", "version", "made_on", "goldilocks", "verifier"):
        if (old := getattr(stated, name)) != (new := getattr(computed, name)):
            found.differing.append(f"{receipts.FILE}: {name} is {old}, the run has {new}.")


@contextmanager
def _judged_again(
    run: Run, version: Version, published: Results, found: Verification
) -> Iterator[tuple[Results, dict[str, str]]]:
    """Judge and decide again in a temporary folder; yield the results and digests, and note what differs."""
    if run.recipe.asks("doubtful_verdicts"):
        found.unchecked.append("a model's votes on doubtful verdicts: those that are stored in the run's folder")
    filters, verifier = Results(published.filters), published.decisions[-1].folder.name
    votes = [stage for part in run.parts if (stage := doubtful_verdicts_of(part)).enabled(run)]
    stored = read_results(run, [*map(attempts_of, run.parts), *votes], verifier)
    digests, judged, failed = dict[str, str](), 0, 0
    with ScratchFolder("receipt") as scratch:
        for part in run.parts:
            place, before = scratch / f"verdicts of {part}", stored[attempts_of(part)]
            compared, broken = _judge_again(run, filters, before, place)
            judged, failed = judged + compared, failed + broken
            for files in zip(*(table_files(folder, "verdicts") for folder in (before.folder, place)), strict=True):
                was, now = (pl.scan_parquet(file, glob=False) for file in files)
                found.differing += _differing("the stored verdicts", was, now, _JUDGED, _ONE)
            opinions = stored.get(doubtful_verdicts_of(part))
            final = place if opinions is None else opinions.folder
            digests[f"verdicts.{part}"] = set_receipts.verdicts_digest(scan_table(final, "verdicts"))
        scratch_run = replace(run, folder=_linked(run, scratch))
        results = filters.plus(*stored)
        for part in run.parts:
            results = results.plus(run_stage(decisions_of(part), scratch_run, results))
        additions = [stage for stage in (TRANSLATION, VARIANTS) if stage.enabled(run)]
        results = results.plus(*read_results(run, additions))  # as they are: no model is asked
        results = results.plus(run_stage(EXPORT, scratch_run, results))
        last = results.decisions[-1]
        table = gather_decisions(last, results[EXPORT], measured_on(run, run.parts[-1], verifier))
        stated = scan_decisions(run.folder, version.number)
        found.differing += _differing("the version", stated, table, _DECIDED)
        digests["decisions"] = digest_of(table)
        left = f", {failed:,} on which the verifier failed left out" if failed else ""
        decided = sum(shard_counts(last.folder, "decisions"))
        found.checked.append(f"{judged:,} verdicts{left}, {decided:,} decisions")
        yield results, digests


def _linked(run: Run, folder: Path) -> Path:
    """Return a folder with links to all that judging again does not make."""
    (folder / "stages").mkdir()
    for entry in (*run.folder.iterdir(), *(run.folder / "stages").iterdir()):
        if entry.name not in (*_MADE_ANEW, Path(EXPORT.folder).name):
            (folder / entry.relative_to(run.folder)).symlink_to(entry)
    return folder


def _judge_again(run: Run, filters: Results, stored: StageResult, place: Path) -> tuple[int, int]:
    """Write new verdicts on the stored attempts, and return how many were judged, and how many are as stored.

    A failed verdict leaves its problem's as stored, as answer classes are numbered otherwise.
    """
    store, problems, judged, failed = attempt_store(run, stored), filters.problems.folder, 0, 0
    with open_judge(run) as judge:
        for index in range(len(shard_counts(problems))):
            frame = read_shard(problems, "kept", index)
            before = read_shard(stored.folder, "verdicts", index)
            rows = store.read(frame["id"].to_list()).join(before, on=_ONE, how="semi", maintain_order="left")
            after = judge_rows(judge, frame, rows)
            failing = pl.concat([side.filter(has_failed()).select("problem") for side in (before, after)])
            now = after.join(failing, on="problem", how="anti")
            kept = before.join(failing, on="problem", how="semi").select(after.columns)
            write_parquet(place / "verdicts" / f"{index:05}.parquet", pl.concat([now, kept]))
            judged, failed = judged + now.height, failed + kept.height
    return judged, failed


def _differing_rows(folder: Path, exported: Path) -> Iterator[str]:
    files = sorted((folder / "data").glob("train-*.parquet"))
    if receipts.column_digests(table_files(exported, "kept")) == receipts.column_digests(files):
        return  # one pass; the comparison by id takes one for each slice
    rows = pl.scan_parquet(files, glob=False).rename({"id": "problem"})
    wanted = scan_table(exported, "kept").rename({"id": "problem"}, strict=False)
    here, columns = (table.collect_schema().names() for table in (rows, wanted))
    yield from _differing("the set", rows, wanted, [name for name in columns or here if name in here])


def _differing(
    what: str, stated: pl.LazyFrame, computed: pl.LazyFrame, columns: Sequence[str], by: Sequence[str] = ("problem",)
) -> Iterator[str]:
    """Yield a sentence for each row that one table lacks, or in which columns differ; a table may have no columns."""
    given = [table for table in (stated, computed) if table.collect_schema().names()]
    if not given:
        return
    sides = (table if table.collect_schema().names() else given[0].clear() for table in (stated, computed))
    marked = (table.select(*columns, here=pl.lit(True)) for table in sides)
    pairs = {name: f"{name}_now" for name in (*columns, "here") if name not in by}
    differs = pl.any_horizontal(pl.col(old).ne_missing(pl.col(new)) for old, new in pairs.items())
    for was, now in in_order(*marked, by=by):
        both = was.join(now, on=by, how="full", coalesce=True, suffix="_now").sort(by)
        for row in both.filter(differs).iter_rows(named=True):
            where = ", ".join(f"{'attempt' if name == 'index' else name} {row[name]}" for name in by)
            if row["here"] is None:
                yield f"{where} is missing from {what}."
            elif row["here_now"] is None:
                yield f"{where} is in {what}, and does not come out."
            else:
                moved = ((name, row[name], row[new]) for name, new in pairs.items() if row[name] != row[new])
                changes = (f"{name} is {_short(old)}, {_short(new)} comes out" for name, old, new in moved)
                yield f"{where}: {'; '.join(changes)}."


def _short(value: object) -> str:
    return "nothing" if value is None else excerpt(str(value), 60)


def measure_receipt(folder: Path, ablation: Path | None = None) -> Receipt:
    """Plant defects if needed, take an ablation's figures, and return the written receipt.

    Raises:
        StoreError: no set is published, or it has changed.
        ConfigError: the ablation is not of this set.
    """
    with lock_folder(folder.absolute()):
        run, version, results = read_published(folder)
        require_unaltered(run.folder / "curated", receipts.LEFT_OUT)
        if ablation is not None:
            figures = ablation_figures(ablation, run)
            measured = set_receipts.MeasuredFigures(figures, version=version.number, decisions=version.digest)
            set_receipts.keep_figures(run.folder, set_receipts.COUNTERFACTUAL, measured)
        if not set_receipts.planted_figures(run, results):
            made_from = set_receipts.planted_from(run, results)
            found = set_receipts.MeasuredFigures(list(planted_figures(run, results)), made_from)
            set_receipts.keep_figures(run.folder, set_receipts.PLANTED, found)
        renew_receipt(run, version, results)
        return receipts.read_receipt(run.folder / "curated")


def ablation_figures(folder: Path, made: Run) -> list[Figure]:
    """Return how training on the set differs from training on other rows, by bench.

    Args:
        folder: of a finished ablation with arms `curated`, trained on the set, and `random`, its base.
    """
    path = folder / "ablation.json"
    try:
        rows = {(row["bench"], row["arm"]): row for row in json.loads(path.read_text(encoding="utf-8"))["results"]}
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(
            f"--ablation {folder}: holds no ablation (no ablation.json); run `goldilocks ablate`."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} is damaged ({error}); the same `goldilocks ablate` writes it again.") from error
    curated, trained = (made.folder / "curated").resolve(), set[Path]()
    for run in sorted((folder / "runs").glob("curated-seed-*")):
        recipe, home = read_run(run)
        trained |= {published_folder(home / place).resolve() for place in getattr(recipe.data, "folders", ())}
    benches = sorted(bench for bench, arm in rows if arm == "curated" and (bench, "random") in rows)
    if trained != {curated} or any(rows[bench, "curated"]["difference"] is None for bench in benches):
        raise ConfigError(
            f"--ablation {folder}: its arm `curated` must be trained on {curated}, and `random` must be its base, as "
            f"in flows/ablations/counterfactual.toml; trained on: {', '.join(map(str, sorted(trained))) or 'nothing'}."
        )
    figures = []
    for bench in benches:
        own, other = rows[bench, "curated"], rows[bench, "random"]
        mean, low, high, count = (own["difference"][name] for name in ("mean", "low", "high", "count"))
        how = (
            "`goldilocks ablate`: held-out pass@1 of models trained on the set minus that of models trained on other "
            f"rows, {own['seeds']} seeds, paired over seeds and problems; {own['sampled_tokens']:,.0f} and "
            f"{other['sampled_tokens']:,.0f} tokens sampled a seed"
        )
        name, title = f"worth.counterfactual.{bench}", f"Held-out pass@1 on {bench}, the set minus other rows"
        interval = None if low is None or high is None else (round(low, 4), round(high, 4))
        figures.append(Figure(name, title, round(float(mean), 4), interval, int(count), how, Needs.TRAINING))
    return figures
