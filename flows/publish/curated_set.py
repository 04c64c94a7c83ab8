"""Publish a run: the curated set, dropped rows, disputed labels and the data card.

A mark in the set's folder has its inputs, the hashes of its files, and its own hash.

Invariant: `DIR/curated` is replaced whole; after a kill, `restore` brings one back.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import LiveModel, Recipe
from curation.prompts.asked import FILE as ASKED
from curation.prompts.asked import asked_by
from curation.public_urls import public_url
from curation.publish import export, review
from curation.publish.cards import card
from curation.publish.receipts import LEFT_OUT
from curation.records import DROPPED, StoreError
from curation.storage.sorted_parts import write_files
from curation.storage.stages import atomic_write, file_digest, read_json, table_files, write_json
from curation.verify.own_judges import NEEDED
from flows.publish import code_publish, disputes, receipts, versions
from flows.publish.card_facts import card_facts
from flows.run import mirroring, retries
from flows.run.mirroring import CURATED, MARK
from flows.run.pipeline import run_pipeline
from flows.run.progress import warn
from flows.run.recipe import as_printed
from flows.run.run_folder import PARTS, Run, as_written, stage_model
from flows.run.stage import Results, StageResult
from flows.stages.attempts import measured_on
from flows.stages.export import EXPORT, PUBLISHED
from flows.stages.judging import own_judges
from flows.stages.sources import SOURCES, read_states

OLD = ".old-curated"
"""In the run folder, for a moment: the previous set."""

FILE_ROWS = 50_000


def publish(run: Run, results: Results) -> Path:
    """Write `DIR/curated`, unless the set is unchanged.

    A refreshed version is published while the pipeline's decisions are those before the refresh.

    Raises:
        StoreError: no problem is left, and no label is disputed.
    """
    last = results.decisions[-1]
    table = versions.gather_decisions(last, results[EXPORT], measured_on(run, run.parts[-1], last.folder.name))
    if (newer := versions.standing_version(run, table)) is not None:
        return republish(run, newer, results)
    is_empty = not results[EXPORT].manifest.kept and disputes.find_disputes(run, results).is_empty()
    if not is_empty:
        version = versions.settle_version(run, table, last.folder.name)
        target = _publish(run, version, results)
    for result in results:
        retries.plan_round(result.folder)
    if is_empty:
        raise StoreError(
            f"{run.folder}: no problem is left for the set, so nothing is published; `goldilocks status {run.folder}` "
            "shows which stage drops them."
        )
    return target


def republish(run: Run, version: versions.Version, results: Results) -> Path:
    """Write `DIR/curated` of a refreshed version from its stored decisions."""
    refreshed = versions.refreshed_run(run, version)
    table = versions.scan_decisions(run.folder, version.number)
    filters = Results(results.filters)
    applied = versions.apply_version(refreshed, filters, table, version.verifier)
    decided = filters.plus(*results.decisions[:-1], applied)
    return _publish(refreshed, version, run_pipeline(refreshed, PUBLISHED, decided))


def _publish(run: Run, version: versions.Version, results: Results) -> Path:
    filters, decided, exported = results.filters, results.decisions, results[EXPORT]
    target = run.folder / "curated"
    restore(run.folder)
    policy = stage_model(run.recipe, run.parts[-1])
    asked = asked_by(policy, run.recipe.verify.response_format) if isinstance(policy, LiveModel) else None
    made_from = {
        EXPORT.name: exported.manifest.digest,
        "dropped": [result.manifest.digest for result in (*filters, *decided)],
        "card": card.VERSION,
        "recipe": _short_hash(recipe_text(run)),
        "settled": settled_digest(run.recipe),
        "verifier": decided[-1].folder.name,
        "disputed": dict(disputes.made_from(run, results)),
        "goldilocks": package_version("goldilocks-rl"),
        "version": version.number,
        "asked": None if asked is None else _short_hash(asked),
        "decisions": version.digest,
        **({"withhold": list(run.recipe.export.withhold)} if run.recipe.export.withhold else {}),
        "receipt": receipts.made_from(run, results),
    }
    mark = published_mark(run)
    if mark and {**mark, "receipt": made_from["receipt"], "files": None} == {**made_from, "files": None}:
        others = altered_files(target, mark)
        if not others:
            if mark.get("receipt") != made_from["receipt"]:
                _finish(run, version, results, target, made_from)
            mirroring.copy(run)
            return target
        warn(run.folder, "publish", f"{target / others[0]} is not what was published; the set is written again")
    staging = run.folder / ".aside-curated"
    shutil.rmtree(staging, ignore_errors=True)
    _write_table(staging / "data", "train", [exported], "kept", export.CURATED)
    _write_table(staging / "dropped", "dropped", [*filters, decided[-1], exported], "dropped", DROPPED)
    if run.recipe.flow == "curate-code":
        code_publish.write_tables(run, exported, staging)
    queue = disputes.find_disputes(run, results)
    disputes.write_disputes(queue, staging / "disputed")
    facts = card_facts(run, version, results, review.dispute_counts(queue), recipe_text(run))
    card.write_card(facts, staging)
    text = card.attribution(facts.pretty_name, facts.license, facts.curated, list(_origins(run, results)))
    atomic_write(staging / "ATTRIBUTION.md", text)
    if asked is not None:
        atomic_write(staging / ASKED, asked)
    if judges := own_judges(run):
        atomic_write(staging / NEEDED, json.dumps([judge.label for judge in judges], indent=1) + "\n")
    atomic_write(staging / versions.CHANGELOG, versions.changelog(run.folder))
    _finish(run, version, results, staging, made_from)
    if target.exists():
        target.rename(run.folder / OLD)
    staging.rename(target)
    restore(run.folder)
    mirroring.copy(run)
    return target


def _origins(run: Run, results: Results) -> Iterator[tuple[str, str, str | None]]:
    states = read_states(results[SOURCES].folder)
    for source in run.recipe.sources:
        held = states.get(source.name, {})
        yield source.name, public_url(source.url or source.path), held.get("commit") or source.revision
        if (join := source.join) is not None:
            yield f"{source.name}, joined with", public_url(join.path), held.get("joined_commit") or join.revision


def _finish(run: Run, version: versions.Version, results: Results, folder: Path, made_from: dict[str, Any]) -> None:
    receipts.write_receipt(receipts.make_receipt(run, results, version, folder), folder)
    write_mark(folder, made_from)


def renew_receipt(run: Run, version: versions.Version, results: Results) -> None:
    """Update the published set's receipt from the run's folder.

    Raises:
        StoreError: another file of the set has changed.
    """
    target = run.folder / "curated"
    require_unaltered(target, LEFT_OUT)
    made_from = {name: value for name, value in (read_mark(target) or {}).items() if name != "files"}
    _finish(run, version, results, target, {**made_from, "receipt": receipts.made_from(run, results)})
    mirroring.copy(run)


def restore(folder: Path) -> None:
    """Finish a publication that was killed between its renames."""
    target, old = folder / CURATED, folder / OLD
    if target.exists():
        shutil.rmtree(old, ignore_errors=True)
    elif old.exists():
        old.rename(target)


def settled_digest(recipe: Recipe) -> str:
    """Return the hash of a recipe without verifier, labels, thresholds and what cannot change a row."""
    without = {"verify", "labels", "workers", "runner", "refresh", "schedule", "storage", "costs"}
    table = as_written(recipe).model_dump(mode="json", exclude=without)
    for part in (*PARTS, "grader"):
        if table[part] is not None:
            table[part]["band"] = table[part]["band"]["attempts"]
    return _short_hash(json.dumps(table, sort_keys=True))


def _short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def recipe_text(run: Run) -> str:
    """Return the recipe as printed on the card."""
    return as_printed(as_written(run.recipe), run.recipe_folder, run.folder)


def published_folder(place: Path) -> Path:
    """Return the set's folder, given it or its run's."""
    return place / "curated" if (place / "curated" / "data").is_dir() else place


def is_published(run: Run) -> bool:
    """Return whether this recipe, thresholds and verifier aside, made the published set."""
    return published_mark(run).get("settled") == settled_digest(run.recipe)


def published_mark(run: Run) -> dict[str, Any]:
    """Return the published set's mark; empty if missing or damaged."""
    try:
        mark = read_mark(run.folder / "curated") or {}
    except StoreError:
        return {}
    return mark if {"verifier", "version", "files"} <= mark.keys() else {}


def read_mark(folder: Path) -> dict[str, Any] | None:
    """Return a set's mark, or None.

    Raises:
        StoreError: it is damaged.
    """
    return read_json(folder / MARK)


def write_mark(folder: Path, made_from: Mapping[str, Any]) -> None:
    """Write a set's mark, with its current files."""
    write_json(folder / MARK, {**made_from, "files": _digests(folder)})


def renew_mark(folder: Path) -> None:
    """Update the files in a set's mark, if any."""
    if (mark := read_mark(folder)) is not None:
        write_mark(folder, mark)


def altered_files(folder: Path, mark: Mapping[str, Any]) -> list[str]:
    """Return the paths of added, removed and changed files."""
    stated, here = mark["files"], _digests(folder)
    return sorted(name for name in {*stated, *here} if stated.get(name) != here.get(name))


def require_unaltered(folder: Path, ignored: Collection[str] = ()) -> None:
    """Refuse a set with a mark whose files, without the ignored ones, have changed.

    Raises:
        StoreError: a file has changed, or the mark is damaged.
    """
    mark = read_mark(folder)
    others = [name for name in altered_files(folder, mark) if name not in ignored] if mark is not None else []
    if others:
        raise StoreError(
            f"{folder / others[0]} is not what was published (its hash differs); `goldilocks run` writes the set again."
        )


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARK)
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}


def _write_table(folder: Path, name: str, stages: Sequence[StageResult], table: str, schema: pl.Schema) -> None:
    frames = (pl.read_parquet(file, glob=False) for result in stages for file in table_files(result.folder, table))
    files = write_files(folder, name, frames, schema, FILE_ROWS, len)
    for file in files:
        file.rename(file.with_stem(f"{file.stem}-of-{len(files):05}"))
