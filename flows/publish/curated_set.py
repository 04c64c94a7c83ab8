"""Publishing a run: the curated set as parquet, beside it the dropped rows and the disputed labels, and the data card.

The folder is made aside; the one before is renamed away and the new one to its place, so `DIR/curated` is always whole.
A kill between the two renames leaves no `DIR/curated`: `restore` puts the one before back. Files hold up to
`FILE_ROWS` rows.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import polars as pl

from curation import cards, export, review
from curation.config import Recipe
from curation.records import DROPPED, PASS_RATE, DropReason
from curation.store import Shard, Stage, read_shard, read_table, write_aside, write_parquet
from curation.versions import CHANGED
from flows.publish import code_publish, disputes, versions
from flows.run.funnel import funnel_rows
from flows.run.recipe import as_printed
from flows.run.run_folder import ALL_TITLES, Done, Run, as_written, drive, inputs, shard_counts

MARK = ".published.json"

OLD = ".old-curated"
"""In the run folder, for a moment: the set before, on its way out."""

FILE_ROWS = 50_000


def export_problems(run: Run, problems: Done, decided: Sequence[Done]) -> Done:
    """The kept problems with their pass rates; those over the recipe's size leave here."""
    last, first = decided[-1], decided[0] if len(decided) > 1 else None
    index = read_table(last.folder, "kept", ["id", "group", "source", "weight"])
    leaving = export.over_quota(index, run.recipe.export.size, run.recipe.seed) if index.height else {}
    measured = versions.measured_on(run, run.stages[-1])

    def work(shard: int) -> Shard:
        kept, decisions = read_shard(last.folder, "kept", shard), read_shard(last.folder, "decisions", shard)
        if "measured_on" not in decisions.columns:
            decisions = decisions.with_columns(measured_on=pl.lit(measured))
        evidence = pl.Series("evidence", [leaving.get(name) for name in kept["id"]], pl.String)
        curated = export.curate(
            kept.filter(evidence.is_null()),
            decisions,
            read_shard(first.folder, "decisions", shard) if first is not None else None,
        )
        reason = DropReason.OVER_QUOTA.value
        dropped = kept.with_columns(evidence, pl.lit(export.STAGE).alias("stage"), pl.lit(reason).alias("reason"))
        over = dropped.filter(evidence.is_not_null()).select(DROPPED.names())
        return Shard(kept.height, {"kept": curated, "dropped": over})

    settings = f"{run.recipe.export.size} {run.recipe.seed} {measured}"
    stage = Stage(run.where("export"), "export", export.VERSION, settings, inputs(problems, *decided))
    counts = shard_counts(last.folder)
    shards = ((rows, lambda shard=number: work(shard)) for number, rows in enumerate(counts))
    return drive(stage, shards, total=sum(counts), rows_in=last.manifest.kept)


def publish(run: Run, filters: Sequence[Done], decided: Sequence[Done], exported: Done) -> Path:
    """Write `DIR/curated`: data/, dropped/, plots/, README.md and CHANGELOG.md. An unchanged set is left as it is.

    Where the line decides what it did before its set was refreshed, the refreshed version is published.
    """
    table = versions.gather(decided[-1], exported, versions.measured_on(run, run.stages[-1]))
    if (newer := versions.standing(run, table)) is not None:
        return republish(run, newer, filters, decided)
    version = versions.settle(run, table, decided[-1].folder.name)
    return _publish(run, version, filters, decided, exported)


def republish(run: Run, version: versions.Version, filters: Sequence[Done], decided: Sequence[Done]) -> Path:
    """Write `DIR/curated` of a refreshed version, from the decisions that are kept of it."""
    later = versions.refreshed(run, version)
    table = versions.decisions_of(run.folder, version.number)
    applied = [*decided[:-1], versions.apply(later, filters[-1], table, version.verifier)]
    return _publish(later, version, filters, applied, export_problems(later, filters[-1], applied))


def _publish(
    run: Run, version: versions.Version, filters: Sequence[Done], decided: Sequence[Done], exported: Done
) -> Path:
    target = run.folder / "curated"
    restore(run.folder)
    made_from = {
        "export": exported.manifest.digest,
        "dropped": [done.manifest.digest for done in (*filters, *decided)],
        "card": cards.VERSION,
        "recipe": hashlib.blake2b(printed(run).encode(), digest_size=8).hexdigest(),
        "settled": settled(run.recipe),
        "verifier": decided[-1].folder.name,
        "disputed": dict(disputes.made_from(run, decided)),
        "goldilocks": package_version("goldilocks-rl"),
        "version": version.number,
        "decisions": version.digest,
    }
    if _published(target) == {**made_from, "files": _sizes(target)}:
        return target
    aside = run.folder / ".aside-curated"
    shutil.rmtree(aside, ignore_errors=True)
    _write_tables(aside / "data", "train", [exported], "kept")
    _write_tables(aside / "dropped", "dropped", [*filters, decided[-1], exported], "dropped")
    if run.recipe.flow == "curate-code":
        code_publish.write_beside(run, exported, aside)
    queue = disputes.disputes(run, filters, decided)
    disputes.write_disputes(queue, aside / "disputed")
    cards.write_card(card_facts(run, version, filters, decided, exported, review.counts(queue)), aside)
    write_aside(aside / versions.CHANGELOG, versions.changelog(run.folder))
    write_aside(aside / MARK, json.dumps({**made_from, "files": _sizes(aside)}, indent=1) + "\n")
    if target.exists():
        target.rename(run.folder / OLD)
    aside.rename(target)
    restore(run.folder)
    return target


def restore(folder: Path) -> None:
    """Bring a publication that was killed between its renames to an end: one whole set, and nothing of another."""
    target, old = folder / "curated", folder / OLD
    if target.exists():
        shutil.rmtree(old, ignore_errors=True)
    elif old.exists():
        old.rename(target)


def settled(recipe: Recipe) -> str:
    """Hash of what a recipe settles before anything is judged: all but the verifier and the bands' thresholds."""
    table = as_written(recipe).model_dump(
        mode="json", exclude={"verify", "workers", "runner", "refresh", "schedule", "costs"}
    )
    for part in ("stage1", "grader", "stage2"):
        if table[part] is not None:
            table[part]["band"] = table[part]["band"]["attempts"]
    text = json.dumps(table, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def printed(run: Run) -> str:
    """The recipe as the card prints it: the same in every run folder."""
    return as_printed(as_written(run.recipe), run.recipe_folder, run.folder)


def is_published(run: Run) -> bool:
    """Whether the published set was made by this recipe, thresholds and verifier aside."""
    mark = _published(run.folder / "curated")
    return mark is not None and mark.get("settled") == settled(run.recipe)


def published_verifier(run: Run) -> str | None:
    """The verifier behind the published set; None where nothing is published."""
    mark = _published(run.folder / "curated")
    return str(mark["verifier"]) if mark is not None else None


def published_version(run: Run) -> int | None:
    """The number of the version that is published; None where nothing is."""
    mark = _published(run.folder / "curated")
    return mark.get("version") if mark is not None else None


def _published(folder: Path) -> dict[str, Any] | None:
    """What the published set says it was made from; None where there is none, or its mark is damaged."""
    try:
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return mark if isinstance(mark, dict) and "verifier" in mark else None


def _sizes(folder: Path) -> dict[str, int]:
    """Size in bytes of each published file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARK)
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def card_facts(
    run: Run,
    version: versions.Version,
    filters: Sequence[Done],
    decided: Sequence[Done],
    exported: Done,
    disputed: Mapping[str, int],
) -> cards.CardFacts:
    """What the card says, gathered from the finished stages."""
    recipe = run.recipe
    rates = {
        part: read_table(done.folder, "decisions", PASS_RATE.names())
        for part, done in zip(run.stages, decided, strict=True)
    }
    settings = {"stage1": recipe.stage1, **({"stage2": recipe.stage2} if recipe.stage2 is not None else {})}
    curated = read_table(exported.folder, "kept")
    first, last = (read_table(decided[at].folder, "decisions", ["problem", "keep", "reason"]) for at in (0, -1))
    per_source = dict(curated.group_by("source").len().iter_rows()) if curated.height else {}
    read = dict(read_table(filters[0].folder, "kept", ["source"]).group_by("source").len().iter_rows())
    return cards.CardFacts(
        name=recipe.name,
        pretty_name=recipe.export.pretty_name or recipe.name,
        description=recipe.description,
        license=recipe.export.license,
        version=package_version("goldilocks-rl"),
        created=None,
        funnel=tuple(funnel_rows([*filters, *decided, exported], ALL_TITLES)),
        sources=tuple(
            cards.SourceFacts(
                source.name, source.url, source.license, read.get(source.name, 0), per_source.get(source.name, 0)
            )
            for source in recipe.sources
        ),
        curated=curated,
        rates=rates,
        bands={
            part: (table.band.min_correct, table.band.max_pass_rate, table.band.attempts)
            for part, table in settings.items()
        },
        policies={part: version.policy if part == run.stages[-1] else _policy(run, part) for part in settings},
        verifier=decided[-1].folder.name,
        recipe_toml=printed(run),
        notes=(*_limits(recipe), *_mixed(curated, version)),
        benchmarks=_benchmarks(recipe, filters),
        disputed={review.KINDS[kind]: count for kind, count in disputed.items()},
        code=code_publish.facts(run) if recipe.flow == "curate-code" else None,
        set_version=version.number,
        changed={name.replace("_", " "): version.counts[name] for name in CHANGED if version.counts[name]},
        compared=cards.compared(first, last, curated["id"]) if len(decided) > 1 and curated.height else None,
    )


def _policy(run: Run, part: str) -> str:
    """Whose attempts were judged, as they are filed."""
    return str(json.loads((run.where(f"{part}.attempts") / "key.json").read_text(encoding="utf-8"))["policy"])


def _limits(recipe: Recipe) -> tuple[str, ...]:
    """What was not looked for; sentences for the card's limits."""
    near = (
        "Near duplicates were found by shared words with the same figures; translations and paraphrases were not."
        if recipe.near_duplicates.enabled
        else "Repeated problems were found by their normalised text. Near duplicates were not looked for."
    )
    overlap = (
        "Overlap with the named benchmarks was looked for by the named methods; benchmarks not named may overlap."
        if recipe.contamination.against
        else "Overlap with benchmarks was not looked for."
    )
    asked = []
    if recipe.rewriting.policy is not None:
        asked.append("Multiple choice that no rule could open was rewritten by a model; what it was stands in raw_*.")
    if recipe.premises.policy is not None:
        votes = recipe.premises
        asked.append(
            f"Premises were judged by {votes.votes} votes of a model: from {votes.threshold:g} of the readable votes "
            "on, a problem was dropped."
        )
    return near, overlap, *asked


def _mixed(curated: pl.DataFrame, version: versions.Version) -> tuple[str, ...]:
    """Where a refresh left pass rates of earlier policies as they were, a sentence that says so."""
    older = curated.filter(pl.col("policy") != version.policy).height if curated.height else 0
    if not older:
        return ()
    return (
        f"{older:,} of the problems keep the pass rate of an earlier policy, which nothing spoke against when the set "
        "was refreshed; the columns policy and measured_on say whose and when.",
    )


def _benchmarks(recipe: Recipe, filters: Sequence[Done]) -> tuple[cards.BenchmarkFacts, ...]:
    """Per benchmark of the recipe: how many problems overlapped with it, by method."""
    done = next((done for done in filters if done.name == "contamination"), None)
    if done is None:
        return ()
    hits = read_table(done.folder, "hits", ["source", "row", "benchmark", "method"]).unique()
    met = hits.group_by("benchmark", "method").len()
    counts = {(name, method): count for name, method, count in met.iter_rows()}
    rows = dict(hits.unique(["source", "row", "benchmark"]).group_by("benchmark").len().iter_rows())
    methods = recipe.contamination.methods
    return tuple(
        cards.BenchmarkFacts(
            one.name, one.license, rows.get(one.name, 0), {m: counts.get((one.name, m), 0) for m in methods}
        )
        for one in recipe.contamination.against
    )


def _write_tables(folder: Path, name: str, stages: Sequence[Done], table: str) -> None:
    """All shards of the stages' tables as files of up to `FILE_ROWS` rows; one empty file where there are no rows."""
    files = list(_grouped([(done, i, n) for done in stages for i, n in enumerate(_rows_of(done, table))]))
    for number, members in enumerate(files):
        frame = pl.concat([read_shard(done.folder, table, index) for done, index in members])
        write_parquet(folder / f"{name}-{number:05}-of-{len(files):05}.parquet", frame)


def _rows_of(done: Done, table: str) -> list[int]:
    if (done.folder / table).is_dir():
        return shard_counts(done.folder, table)
    return []


def _grouped(shards: Sequence[tuple[Done, int, int]]) -> Iterator[list[tuple[Done, int]]]:
    """Shards in order, gathered into groups of up to `FILE_ROWS` rows; empty shards only where all are empty."""
    filled = [shard for shard in shards if shard[2]] or list(shards[:1])
    group: list[tuple[Done, int]] = []
    rows = 0
    for done, index, count in filled:
        if group and rows + count > FILE_ROWS:
            yield group
            group, rows = [], 0
        group.append((done, index))
        rows += count
    if group:
        yield group
