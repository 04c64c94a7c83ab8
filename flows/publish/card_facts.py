"""Gather the data card's facts from finished stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version as package_version
from pathlib import Path

import polars as pl

from curation.config import Source
from curation.filters.decontamination.overlap import OVERLAP
from curation.public_urls import public_url
from curation.publish import review
from curation.publish.cards import facts
from curation.publish.cards.card import license_counts
from curation.publish.pages import render_template
from curation.publish.versions import MOVED
from curation.records import DropReason
from curation.storage.sorted_parts import scan_table
from curation.storage.stages import read_shard, read_table
from flows.publish import code_publish
from flows.publish.versions import Version
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import Results, StageResult, shard_counts
from flows.stages.attempts import attempt_key, attempts_of
from flows.stages.decisions import deciding_shards
from flows.stages.decontamination import DECONTAMINATION, benchmarks_of
from flows.stages.export import EXPORT
from flows.stages.questions import question_lines
from flows.stages.sources import SOURCES, made_phrase, read_states
from flows.stages.translation import TRANSLATION, translation_section


def card_facts(
    run: Run,
    version: Version,
    results: Results,
    disputed: Mapping[str, int],
    recipe_toml: str,
) -> facts.CardFacts:
    """Return the data card's facts."""
    recipe, decided, exported = run.recipe, results.decisions, results[EXPORT]
    curated = scan_table(exported.folder, "kept")
    suspicion = dict[str, str]()
    if deciding_shards(run, results) is not None:
        words = "by the answers of all policies the reference is wrong with a probability of"
        suspicion = {"suspicion": f"{words} {recipe.labels.drop_above:g} or more"}
    notes = render_template(
        Path(__file__).with_name("notes.md.jinja"),
        recipe=recipe,
        questions=list(question_lines(run, decided[-1].folder.name)),
        is_weighed=bool(suspicion),
        older=curated.filter(pl.col("policy") != version.policy).select(pl.len()).collect().item(),
    )
    return facts.CardFacts(
        name=recipe.name,
        pretty_name=recipe.export.pretty_name or recipe.name,
        description=recipe.description,
        license=recipe.export.license,
        version=package_version("goldilocks-rl"),
        funnel=tuple(results.funnel),
        sources=len(recipe.sources),
        origins=_sources(run, results, curated),
        curated=curated,
        stages=tuple(
            _stage_facts(run, part, result, exported, version) for part, result in zip(run.parts, decided, strict=True)
        ),
        verifier=decided[-1].folder.name,
        recipe_toml=recipe_toml,
        notes=tuple(notes.splitlines()),
        sections=(
            _decontamination(run, results),
            *([translation_section(results[TRANSLATION], recipe.translation)] if recipe.translation else ()),
            *([code_publish.tests_section(run)] if recipe.flow == "curate-code" else ()),
        ),
        **suspicion,
        disputed={review.KINDS[kind]: count for kind, count in disputed.items()},
        set_version=version.number,
        changed={name.replace("_", " "): version.counts[name] for name in MOVED if version.counts[name]},
        compared=facts.compare_stages(
            (read_shard(decided[0].folder, "decisions", shard, ["problem", "reason"]), decisions, published)
            for shard, (decisions, published) in enumerate(_with_published(decided[-1], exported))
        )
        if len(decided) > 1 and exported.manifest.kept
        else None,
    )


def _sources(run: Run, results: Results, curated: pl.LazyFrame) -> str:
    rows_read = scan_table(results[SOURCES].folder, "kept").group_by("source").len()
    return render_template(
        Path(__file__).with_name("sources.md.jinja"),
        recipe=run.recipe,
        states=read_states(results[SOURCES].folder),
        ledger=license_counts(curated) if results[EXPORT].manifest.kept else {},
        read=dict(rows_read.collect(engine="streaming").iter_rows()),
        made={one.name: _made_words(one, curated) for one in run.recipe.sources if one.is_made},
        public_url=public_url,
    ).rstrip("\n")


def _made_words(source: Source, curated: pl.LazyFrame) -> str:
    level = pl.col("meta").str.json_path_match("$.level").cast(pl.Int64).alias("level")
    is_variant = pl.col("meta").str.json_path_match("$.variant_of").is_not_null()
    is_own = (pl.col("source") == source.name) & pl.col("translation_of").is_null() & ~is_variant
    own = curated.filter(is_own).select(level)
    counts = own.group_by("level").len().sort("level").collect(engine="streaming").iter_rows()
    inside = ", ".join(f"level {number}: {count:,}" for number, count in counts) or "none"
    return f"{made_phrase(source)}; in the set {inside}"


def _with_published(decided: StageResult, exported: StageResult) -> Iterator[tuple[pl.DataFrame, pl.Series]]:
    for shard in range(len(shard_counts(exported.folder))):
        decisions = read_shard(decided.folder, "decisions", shard)
        yield decisions, read_shard(exported.folder, "kept", shard, ["id"])["id"]


def _stage_facts(
    run: Run, part: str, decided: StageResult, exported: StageResult, version: Version
) -> facts.StageFacts:
    policy = version.policy
    if part != run.parts[-1]:
        policy = attempt_key(attempts_of(part).folder_in(run, version.verifier)).policy
    inside = pl.when(pl.col("skipped") > 0).then(pl.col("reason").is_null())
    was_judged = pl.col("reason").ne_missing(DropReason.VERIFIER_FAILED.value)
    rates = facts.count_rates(
        (decisions.filter(was_judged).with_columns(foreseen_inside=inside), published)
        for decisions, published in _with_published(decided, exported)
    )
    return facts.StageFacts(decided.stage.title, policy, difficulty_stage(run.recipe, part).band, rates)


def _decontamination(run: Run, results: Results) -> str:
    result = results.get(DECONTAMINATION)
    named = [benchmark for benchmark, _ in benchmarks_of(run)] if result is not None else []
    if result is None or not named:
        return ""
    methods, problems = run.recipe.decontamination.methods, ["source", "row", "benchmark"]
    hits = read_table(result.folder, "hits", [*problems, "method", "kind"]).unique()
    overlaps = hits.filter(pl.col("kind") == OVERLAP)
    templates = hits.join(overlaps, on=problems, how="anti").unique(problems)
    counted = [overlaps.unique(problems), *(overlaps.filter(method=method) for method in methods), templates]
    benchmarks = [
        (benchmark, [table.filter(benchmark=benchmark.name).height for table in counted]) for benchmark in named
    ]
    template = Path(__file__).with_name("decontamination.md.jinja")
    return render_template(template, methods=methods, benchmarks=benchmarks).rstrip("\n")
