"""Compute, write and update a published set's receipt.

Invariants: the same run gives the same bytes; the receipt is written last, as it has all other files' digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version as package_version
from pathlib import Path

import polars as pl

from curation.filters.statements.rules import MEASURED
from curation.planting import VERSION as PLANTING
from curation.publish import receipts, review
from curation.publish.audit import estimate_audit
from curation.publish.cards.card import license_counts
from curation.publish.export_formats.writing import card_license
from curation.publish.receipts import Figure, Needs, Receipt, power_of_tests, share_figure
from curation.storage.sorted_parts import digest_in_order, scan_table
from curation.storage.stages import atomic_write, file_digest, read_shard, read_table
from flows.publish.disputes import AUDIT, read_audit
from flows.publish.versions import Version
from flows.run.run_folder import Run, as_written, verdicts_of_people
from flows.run.stage import TESTS_TABLE, Results
from flows.stages.decisions import label_shards
from flows.stages.export import EXPORT
from flows.stages.questions import final_verdicts
from flows.stages.sources import SOURCES
from flows.stages.tests import TESTS

VERSION = "receipts@4"
"""Changed whenever the same run could give another receipt."""

FOLDER, PLANTED, COUNTERFACTUAL = "receipt", "planted.json", "counterfactual.json"

OF_FILES = frozenset({"licences"})
"""Sections of figures from a set's own files."""

_LEDGER = ["source", "license", "raw_statement", "raw_answer", "also_from"]

_AUDIT = "goldilocks review DIR --audit 60"

_NOT_OF_ROWS = {
    *("name", "description", "workers", "runner", "refresh", "schedule", "costs", "export"),
    *("storage", "translation"),
}
"""Tables of a recipe that cannot change a row or its decision."""

_NOT_MEASURED = (
    Figure(
        "worth.counterfactual",
        "Held-out pass@1, the set minus as many random rows",
        how="an ablation with two arms, the curated set and as many random rows of its sources, measures it "
        "(`goldilocks ablate counterfactual`); none was given",
        needs=Needs.TRAINING,
        measure="goldilocks publish DIR --receipt --ablation FOLDER",
    ),
    Figure("planted.defects", "All kinds", how="nothing was planted yet", measure="goldilocks publish DIR --receipt"),
)
"""Placeholders of figures that need their own command."""


def make_receipt(
    run: Run,
    results: Results,
    version: Version,
    folder: Path,
    digests: Mapping[str, str] | None = None,
    planted: Iterable[Figure] | None = None,
) -> Receipt:
    """Return the receipt of a run's newest version.

    Args:
        folder: of the otherwise complete set.
        digests, planted: recomputed; by default the stored ones.
    """
    found = planted_figures(run, results) if planted is None else list(planted)
    figures = [*(counterfactual_figures(run, version) or _NOT_MEASURED[:1]), *(found or _NOT_MEASURED[1:])]
    if run.recipe.flow == "curate-code":
        figures += _test_figures(results)
    else:
        off = {f"precision.{rule}" for rule in run.recipe.statements.disabled}
        figures += _label_figures(run, results, version)
        figures += [figure for figure in precision_figures() if figure.name not in off]
    figures += _digest_figures(version, digests or stored_digests(run, results, version))
    goldilocks, verifier = package_version("goldilocks-rl"), results.decisions[-1].folder.name
    about = (run.recipe.name, version.number, version.made_on, goldilocks, verifier)
    return with_contents(Receipt(*about, 0, tuple(figures)), folder)


def with_contents(receipt: Receipt, folder: Path) -> Receipt:
    """Return a receipt with rows, digests and licences of a set's folder."""
    files = sorted((folder / "data").glob("train-*.parquet"))
    rows, columns = receipts.column_digests(files)
    tables = (pl.scan_parquet(file, glob=False).select(_LEDGER) for file in files)
    ledger = receipts.licence_figures(license_counts(*tables), card_license(folder))
    others = [figure for figure in receipt.figures if figure.section not in OF_FILES]
    place = next((at for at, figure in enumerate(others) if figure.section == "digests"), len(others))
    figures = (*others[:place], *ledger, *others[place:])
    return replace(receipt, rows=rows, columns=columns, files=receipts.file_digests(folder), figures=figures)


def write_receipt(receipt: Receipt, folder: Path) -> None:
    """Write receipt.json and RECEIPT.md into the set's folder."""
    atomic_write(folder / receipts.FILE, receipt.as_json())
    atomic_write(folder / receipts.PAGE, receipts.page(receipt))


def renew_contents(folder: Path) -> None:
    """Update a changed set's receipt, if any; its run's figures stay."""
    if (folder / receipts.FILE).is_file():
        write_receipt(with_contents(receipts.read_receipt(folder), folder), folder)


def made_from(run: Run, results: Results) -> str:
    """Return the hash of a receipt's inputs that are not the set's."""
    files = [run.folder / name for name in (AUDIT, f"{FOLDER}/{PLANTED}", f"{FOLDER}/{COUNTERFACTUAL}")]
    digests = [file_digest(path) if path.is_file() else "" for path in files]
    contents = [*digests, review.digest(verdicts_of_people(run)), VERSION, planted_from(run, results)]
    return hashlib.blake2b(json.dumps(contents).encode(), digest_size=8).hexdigest()


def planted_figures(run: Run, results: Results) -> list[Figure]:
    """Return figures on planted defects, unless recipe or rows have changed."""
    kept = _kept(run.folder, PLANTED)
    return kept.figures if kept.made_from == planted_from(run, results) else []


def counterfactual_figures(run: Run, version: Version) -> list[Figure]:
    """Return the figures of an ablation; titles name an earlier version."""
    kept = _kept(run.folder, COUNTERFACTUAL)
    if kept.decisions == version.digest:
        return kept.figures
    return [replace(figure, title=f"{figure.title} (of version {kept.version})") for figure in kept.figures]


@dataclass(frozen=True, slots=True)
class MeasuredFigures:
    """Separately measured figures, and what they were measured on."""

    figures: list[Figure]
    made_from: str = ""
    version: int = 0
    decisions: str = ""


def keep_figures(folder: Path, name: str, measured: MeasuredFigures) -> None:
    """Store figures in a run's folder."""
    atomic_write(folder / FOLDER / name, json.dumps(asdict(measured), indent=1, ensure_ascii=False) + "\n")


def _kept(folder: Path, name: str) -> MeasuredFigures:
    path = folder / FOLDER / name
    return receipts.read_stored(path, MeasuredFigures, "measure it again") or MeasuredFigures([])


def stored_digests(run: Run, results: Results, version: Version) -> dict[str, str]:
    """Return the digests of a run folder's verdicts, by stage, and of the version's decisions."""
    verifier = results.decisions[-1].folder.name
    folders = {f"verdicts.{part}": final_verdicts(run, part).folder_in(run, verifier) for part in run.parts}
    verdicts = {name: verdicts_digest(scan_table(folder, "verdicts")) for name, folder in folders.items()}
    return {**verdicts, "decisions": version.digest}


def verdicts_digest(verdicts: pl.LazyFrame) -> str:
    """Return the hash of `VERDICT` rows, in any order."""
    if not verdicts.collect_schema().names():
        return hashlib.blake2b(digest_size=16).hexdigest()
    columns = ["problem", "index", "reference", "outcome", "answer", "answer_class"]
    return digest_in_order(verdicts.select(columns), by=("problem", "index"))


def planted_from(run: Run, results: Results) -> str:
    """Return the hash of what planted defects depend on."""
    recipe = as_written(run.recipe).model_dump(mode="json", exclude=_NOT_OF_ROWS)
    results_of_rows = (*results.filters, *results.decisions)
    rows = results[SOURCES]  # files that hold the same rows
    stages = [
        (None if result is rows else result.manifest.fingerprint, result.manifest.digest) for result in results_of_rows
    ]
    text = json.dumps([recipe, stages, VERSION, PLANTING], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _label_figures(run: Run, results: Results, version: Version) -> Iterator[Figure]:
    if (audited := _audited(run, version, results)) is not None:
        yield audited
    count, total = 0, list[float]()
    labels = label_shards(run, Results(results.filters), results.decisions[-1].folder.name)
    for shard in range(labels.count):
        published = read_shard(results[EXPORT].folder, "kept", shard, ["id"])["id"]
        rows = labels.read(shard).filter(pl.col("problem").is_in(published.implode()))["wrong_label"].drop_nulls()
        count += len(rows)
        total.append(float(rows.sum()))
    yield Figure(
        "labels.expected",
        "Expected by a model of everyone's answers, not measured" if audited is None else "The model's expectation",
        round(sum(total) / count, 4) if count else None,
        n=count,
        how="the mean over the set of the probability that a reference is wrong, given the answers of all policies; it "
        f"depends on that model, so it has no interval; `{_AUDIT}` measures the share on rows that people judge",
        measure=None if count else _AUDIT,
    )


def _audited(run: Run, version: Version, results: Results) -> Figure | None:
    audit = read_audit(run.folder)
    if audit is None or audit.version is None:
        return None
    verdicts, exported = verdicts_of_people(run), results[EXPORT].folder
    judged = audit.wrong_labels(verdicts)
    answers = dict(read_table(exported, "kept", ["id", "answer"], pl.col("id").is_in(list(judged))).iter_rows())
    gone = judged.keys() - answers.keys()
    mended = {name for name, wrong in judged.items() if wrong and answers.get(name) == verdicts[name].answer}
    title = "Measured by an audit" + (f" of version {audit.version}" if audit.version != version.number else "")
    how = (
        "rows drawn with known probabilities and judged by people, each weighted by the rows that it represents "
        "(Horvitz and Thompson); wrong labels that were corrected or taken out since do not count; problems "
        "added after the audited version were not seen"
    )
    estimate = estimate_audit(audit.strata, judged, mended, gone)
    if estimate is None:
        return None
    value, interval = round(estimate.share, 4), (round(estimate.low, 4), round(estimate.high, 4))
    counts = {"found wrong": estimate.wrong, "drawn": len(audit.rows)}
    return Figure("labels.audited", title, value, interval, estimate.judged, how, counts=counts)


def _test_figures(results: Results) -> list[Figure]:
    exported = read_table(results[EXPORT].folder, "kept", ["group"])
    groups = exported["group"].unique().implode() if exported.height else pl.lit([], pl.List(pl.String))
    tables = {
        name: read_table(results[TESTS].folder, name).filter(pl.col("problem").is_in(groups))
        for name in ("runs", "decisions", TESTS_TABLE)
    }
    given = read_table(results[SOURCES].folder, TESTS_TABLE, ["problem", "index"])
    kept = tables[TESTS_TABLE].select("problem", "index").join(given, on=["problem", "index"], how="anti")
    return power_of_tests(tables["runs"], tables["decisions"], kept.rename({"index": "test"}))


def precision_figures() -> Iterator[Figure]:
    """Yield each format rule's precision on labelled rows."""
    how = (
        f"labelled rows of Goldilocks {package_version('goldilocks-rl')} that a rule drops, and how many of them "
        "cannot be used as they are; measured on the project's sets, not on this one"
    )
    for rule, (fired, right) in MEASURED.items():
        yield share_figure(f"precision.{rule}", rule.replace("_", " "), right, fired, how, Needs.PACKAGE)


def _digest_figures(version: Version, digests: Mapping[str, str]) -> Iterator[Figure]:
    how = (
        "verdicts of this verifier on each stage's stored attempts, and the decisions; `goldilocks "
        "verify receipt` computes the same with the same verifier"
    )
    for name, digest in digests.items():
        title = f"Verdicts of {name.removeprefix('verdicts.').replace('stage', 'stage ')}"
        if name == "decisions":
            title = "Decisions" if version.origin == "run" else "Decisions, refreshed"
        yield Figure(f"digests.{name}", title, digest, how=how)
