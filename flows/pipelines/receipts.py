"""Verify a set's receipt (`goldilocks verify receipt`), or measure it (`goldilocks publish DIR --receipt`).

Verification recomputes each figure that needs no GPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import polars as pl

from curation.policies.excerpt import excerpt
from curation.publish import receipts, review
from curation.publish.receipts import Figure, Needs, Receipt
from curation.records import ConfigError, SourceError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.sorted_parts import in_order, scan_table
from curation.storage.stages import table_files
from flows.pipelines.find_problem import filters_of
from flows.pipelines.judged_again import judged_again
from flows.pipelines.planted_defects import planted_figures
from flows.publish import receipts as set_receipts
from flows.publish.curated_set import (
    published_folder,
    published_mark,
    published_verifier,
    renew_receipt,
    require_published,
)
from flows.publish.receipts import OF_FILES, make_receipt, precision_figures, stored_digests, with_contents
from flows.publish.versions import Version, digest_of, latest, newest_run, scan_decisions
from flows.run.pipeline import read_results
from flows.run.run_folder import Run, verdicts_of_people
from flows.run.stage import Results
from flows.run.training import read_run
from flows.stages.decisions import decisions_of as decisions_stage
from flows.stages.export import EXPORT, PUBLISHED
from flows.stages.judging import verifier_version


@dataclass(slots=True)
class Verification:
    """The result of verifying a receipt.

    Args:
        differing: a sentence per difference.
        checked: what was recomputed, in words.
        unchecked: what was not, with reasons.
    """

    folder: Path
    differing: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Return whether nothing differs."""
        return not self.differing


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A finished run's newest version, with its results."""

    run: Run
    version: Version
    verifier: str
    results: Results


def read_published(folder: Path) -> PublishedRun:
    """Read a finished run.

    Raises:
        StoreError: it has no published set.
    """
    run = newest_run(folder.absolute())
    verifier, version = published_verifier(run), latest(run.folder)
    if verifier is None or version is None:
        raise StoreError(f"{folder} holds no finished run yet; finish it with `goldilocks run`.")
    decided = [decisions_stage(part) for part in run.parts]
    last = [stage for stage in PUBLISHED if stage.enabled(run)]
    results = read_results(run, filters_of(run)).plus(*read_results(run, [*decided, *last], verifier))
    return PublishedRun(run, version, verifier, results)


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
        own = with_contents(stated, folder)
    except (pl.exceptions.PolarsError, OSError) as error:
        first = next(iter(str(error).splitlines()), "")
        found.differing += [*_file_sentences(stated, receipts.file_digests(folder)), f"data/ cannot be read ({first})."]
        return found
    _check_contents(stated, own, found)
    home = folder.absolute().parent
    if folder.name == "curated" and (home / "run.json").is_file():
        _check_run(stated, read_published(home), folder, found, quick=quick)
    else:
        _check_alone(stated, own, found)
    return found


def _check_itself(stated: Receipt, folder: Path, found: Verification) -> None:
    if (folder / receipts.FILE).read_text(encoding="utf-8") != stated.as_json():
        found.differing.append(f"{receipts.FILE}: its content does not have the digest that it states; it was edited.")
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
            yield f"{name} is not the file that the receipt names: its SHA-256 differs."


def _check_contents(stated: Receipt, own: Receipt, found: Verification) -> None:
    found.differing += _file_sentences(stated, own.files)
    if own.rows != stated.rows:
        found.differing.append(f"data/: {stated.rows:,} problems are stated, {own.rows:,} are there.")
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
        computed = replace(own, figures=tuple(precision_figures()))
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


def _check_run(stated: Receipt, published: PublishedRun, folder: Path, found: Verification, *, quick: bool) -> None:
    run, version, verifier = published.run, published.version, published.verifier
    mark, today = published_mark(run), verifier_version(run)
    if mark is not None and mark["disputed"]["said"] != review.digest(verdicts_of_people(run)):
        found.unchecked.append(
            "people's verdicts since the set was published: they are applied here, so decisions may differ; "
            "`goldilocks run` publishes them"
        )
    if version.origin == "run" and today == verifier:
        with judged_again(run, Results(published.results.filters), verifier, version) as again:
            found.differing += again.differing
            left = f", {again.failed:,} on which the verifier failed left out" if again.failed else ""
            found.checked.append(f"{again.verdicts:,} verdicts{left}, {again.decisions:,} decisions")
            if run.recipe.asks("doubtful_verdicts"):
                found.unchecked.append(
                    "a model's votes on doubtful verdicts: those that are stored in the run's folder"
                )
            _compare(stated, published, again.results, again.digests, folder, found, quick=quick)
        return
    why = (
        "it is a refreshed version, of which only its folder's files are compared"
        if version.origin != "run"
        else f"verdicts are {verifier}'s, this Goldilocks judges by {today}; `goldilocks run` "
        "judges by it, and `goldilocks diff` shows what changes"
    )
    found.unchecked.append(f"digests: attempts were not judged again, {why}")
    digests = stored_digests(run, published.results, version)
    digests["decisions"] = digest_of(scan_decisions(run.folder, version.number))
    _compare(stated, published, published.results, digests, folder, found, quick=quick)


def _compare(
    stated: Receipt,
    published: PublishedRun,
    results: Results,
    digests: Mapping[str, str],
    folder: Path,
    found: Verification,
    *,
    quick: bool,
) -> None:
    run, is_planted = published.run, any(f.section == "planted" and f.value is not None for f in stated.figures)
    planted = planted_figures(run, published.results) if is_planted and not quick else None
    computed = make_receipt(run, results, published.version, folder, digests, planted)
    names = {figure.name for figure in (*stated.figures, *computed.figures) if figure.section not in OF_FILES}
    found.differing += receipts.differing_figures(stated, computed, names)
    found.differing += _differing_rows(folder, results[EXPORT].folder)
    measured = [figure for figure in stated.figures if figure.section not in OF_FILES and figure.value is not None]
    training = [figure.name for figure in measured if figure.needs is Needs.TRAINING]
    found.checked.append(f"{len(measured) - len(training):,} figures, {stated.rows:,} problems")
    found.unchecked += [f"{name}: compared with the run's copy; it takes training" for name in training]
    if is_planted and planted is None:
        found.unchecked.append("planted defects: compared with the run's copy; without --quick they are planted again")
    for name in ("name", "version", "made_on", "goldilocks", "verifier"):
        if (old := getattr(stated, name)) != (new := getattr(computed, name)):
            found.differing.append(f"{receipts.FILE}: {name} is {old}, the run has {new}.")


def _differing_rows(folder: Path, exported: Path) -> Iterator[str]:
    files = sorted((folder / "data").glob("train-*.parquet"))
    if receipts.column_digests(table_files(exported, "kept")) == receipts.column_digests(files):
        return  # one pass; the comparison by id takes one for each slice
    rows = pl.scan_parquet(files, glob=False)
    here, wanted = rows.collect_schema().names(), scan_table(exported, "kept")
    if not wanted.collect_schema().names():
        wanted = rows.clear()
    columns = [name for name in wanted.collect_schema().names() if name in here and name != "id"]
    tables = (table.select("id", *columns).rename({"id": "problem"}) for table in (wanted, rows))
    for ours, theirs in in_order(*tables):
        if ours.equals(theirs):
            continue
        for name in ours.join(theirs, on="problem", how="anti", maintain_order="left")["problem"]:
            yield f"problem {name} is missing from the set."
        for name in theirs.join(ours, on="problem", how="anti", maintain_order="left")["problem"]:
            yield f"problem {name} is in the set, and the run does not export it."
        both = ours.join(theirs, on="problem", suffix="_there", maintain_order="left")
        for column in columns:
            for row in both.filter(pl.col(column).ne_missing(pl.col(f"{column}_there"))).iter_rows(named=True):
                there, stated = _short(row[f"{column}_there"]), _short(row[column])
                yield f"problem {row['problem']}: {column} is {there}, the run exports {stated}."


def _short(value: object) -> str:
    return "nothing" if value is None else excerpt(str(value), 60)


def measure_receipt(folder: Path, ablation: Path | None = None) -> Receipt:
    """Plant defects if needed, take an ablation's figures, and return the written receipt.

    Raises:
        StoreError: no set is published, or it has changed.
        ConfigError: the ablation is not of this set.
    """
    with lock_folder(folder.absolute()):
        published = read_published(folder)
        run, version, results = published.run, published.version, published.results
        require_published(run)
        if ablation is not None:
            figures = ablation_figures(ablation, published)
            about = {"version": version.number, "decisions": version.digest}
            set_receipts.keep_figures(run.folder, set_receipts.COUNTERFACTUAL, figures, **about)
        if not set_receipts.planted_figures(run, results):
            made_from = set_receipts.planted_from(run, results)
            found = planted_figures(run, results)
            set_receipts.keep_figures(run.folder, set_receipts.PLANTED, found, made_from=made_from)
        renew_receipt(run, version, results)
        return receipts.read_receipt(run.folder / "curated")


def ablation_figures(folder: Path, published: PublishedRun) -> list[Figure]:
    """Return how training on the set differs from training on other rows, by bench.

    Args:
        folder: of a finished ablation with arms `curated`, trained on the set, and `random`, its base.
    """
    path = folder / "ablation.json"
    try:
        rows = {(row["bench"], row["arm"]): row for row in json.loads(path.read_text(encoding="utf-8"))["results"]}
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(f"--ablation {folder}: holds no ablation (no ablation.json); `goldilocks ablate`.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} is damaged ({error}); the same `goldilocks ablate` writes it again.") from error
    curated, trained = (published.run.folder / "curated").resolve(), set[Path]()
    for run in sorted((folder / "runs").glob("curated-seed-*")):
        recipe, home = read_run(run)
        trained |= {published_folder(home / place).resolve() for place in getattr(recipe.data, "folders", ())}
    benches = sorted(bench for bench, arm in rows if arm == "curated" and (bench, "random") in rows)
    if trained != {curated} or any(rows[bench, "curated"]["difference"] is None for bench in benches):
        raise ConfigError(
            f"--ablation {folder}: its arm `curated` must be trained on {curated}, and `random` must be its base, as "
            f"in flows/ablations/counterfactual.toml; trained on: {', '.join(map(str, sorted(trained))) or 'nothing'}."
        )
    return [_counterfactual(bench, rows[bench, "curated"], rows[bench, "random"]) for bench in benches]


def _counterfactual(bench: str, own: Mapping[str, Any], other: Mapping[str, Any]) -> Figure:
    difference = own["difference"]
    low, high = difference["low"], difference["high"]
    interval = None if low is None or high is None else (round(low, 4), round(high, 4))
    how = (
        "`goldilocks ablate`: held-out pass@1 of models trained on the set less that of models trained on other rows, "
        f"{own['seeds']} seeds, paired over seeds and problems; {own['sampled_tokens']:,.0f} and "
        f"{other['sampled_tokens']:,.0f} tokens sampled a seed"
    )
    title, value = f"Held-out pass@1 on {bench}, the set less other rows", round(float(difference["mean"]), 4)
    count = int(difference["count"])
    return Figure(f"worth.counterfactual.{bench}", title, value, interval, count, how, Needs.TRAINING)
