"""Gather the data card's facts from finished stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version as package_version
from typing import Any

import polars as pl

from curation.config import Recipe, Source
from curation.config.sources import Made
from curation.filters.decontamination.overlap import OVERLAP
from curation.filters.statements.rules import MEASURED
from curation.public_urls import public_url
from curation.publish import review
from curation.publish.cards import facts
from curation.publish.cards.card import license_counts
from curation.publish.cards.words import count_phrase
from curation.publish.pages import Block, Section, Table, cell, wilson
from curation.publish.versions import MOVED
from curation.records import DropReason
from curation.storage.sorted_parts import scan_table
from curation.storage.stages import read_shard, read_table
from flows.publish import code_publish
from flows.publish.versions import Version
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import Results, StageResult, shard_counts
from flows.stages.attempts import attempt_key, attempts_of
from flows.stages.decisions import LabelShards, deciding_shards
from flows.stages.decontamination import DECONTAMINATION, benchmarks_of
from flows.stages.export import EXPORT
from flows.stages.questions import question_lines
from flows.stages.sources import SOURCES, made_phrase, read_states
from flows.stages.translation import TRANSLATION, translation_section

_IS_ACCUSED = pl.col("reason") == DropReason.SUSPECTED_WRONG_LABEL.value


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
    suspicion, label_notes = dict[str, str](), list[str]()
    if (labels := deciding_shards(run, results)) is not None:
        least = f"{recipe.labels.drop_above:g} or more"
        words = f"by the answers of all policies the reference is wrong with a probability of {least}"
        suspicion, label_notes = {"suspicion": words}, [_label_note(recipe, results, labels)]
    return facts.CardFacts(
        name=recipe.name,
        pretty_name=recipe.export.pretty_name or recipe.name,
        description=recipe.description,
        license=recipe.export.license,
        version=package_version("goldilocks-rl"),
        funnel=tuple(results.funnel),
        sources=len(recipe.sources),
        origins=tuple(_origins(run, results, curated)),
        curated=curated,
        stages=tuple(
            _stage_facts(run, part, result, exported, version) for part, result in zip(run.parts, decided, strict=True)
        ),
        verifier=decided[-1].folder.name,
        recipe_toml=recipe_toml,
        notes=(
            *_limits(recipe),
            *question_lines(run, decided[-1].folder.name),
            *label_notes,
            *_earlier_policies(curated, version),
        ),
        sections=(
            _decontamination(run, results),
            *([translation_section(results[TRANSLATION], recipe.translation)] if recipe.translation else ()),
            *([code_publish.tests_section(run)] if recipe.flow == "curate-code" else ()),
        ),
        **suspicion,
        disputed={review.KINDS[kind]: count for kind, count in disputed.items()},
        set_version=version.number,
        changed={name.replace("_", " "): version.counts[name] for name in MOVED if version.counts[name]},
        compared=_compared(decided[0], decided[-1], exported) if len(decided) > 1 and exported.manifest.kept else None,
    )


def _origins(run: Run, results: Results, curated: pl.LazyFrame) -> Iterator[Block]:
    states, recipe, rows, notes = read_states(results[SOURCES].folder), run.recipe, [], []
    ledger = license_counts(curated) if results[EXPORT].manifest.kept else {}
    rows_read = scan_table(results[SOURCES].folder, "kept").group_by("source").len()
    read = dict(rows_read.collect(engine="streaming").iter_rows())
    for source in recipe.sources:
        held, counts = states.get(source.name, {}), ledger.get(source.name, ())
        name = f"[{cell(source.name)}]({public_url(source.url)})" if source.url else cell(source.name)
        commit = held.get("commit") or source.revision
        stated = [f"`{commit[:12]}`"] if commit else []
        stated += [f"digest `{held['digest'][:16]}`"] if held.get("digest") else []
        state = "left out: not read" if source.name in recipe.left_out else ", ".join(stated) or "–"
        in_set, merged = sum(problems for _, problems, _, _ in counts), sum(copies for *_, copies in counts)
        rows.append(
            (name, cell(source.license), state, *(f"{n:,}" for n in (read.get(source.name, 0), in_set, merged)))
        )
        if steps := _selection(source, held):
            seen = f", {count_phrase(held['rows'], 'row')} seen" if held.get("rows") else ""
            notes.append(f"Of {source.name}{seen}: {', '.join(steps)}.")
        if source.made is not None:
            notes.append(f"**Made, not collected.** {source.name}: {_made_words(source.made, source.name, curated)}.")
    yield Table(("Source", "Licence", "State", "Rows read", "In the set", "Merged copies"), rows, "lllrrr")
    yield from notes
    if missing := [source.name for source in recipe.sources if source.name in recipe.left_out]:
        it = "it" if len(missing) == 1 else "them"
        yield f"**Left out.** The recipe names {', '.join(missing)} too; by `left_out` this run did not read {it}."
    yield (
        "Each problem has its source's licence in `license`, and in `also_from` source, row and licence of the copies "
        "that were merged into it. What a source's publisher states was not checked further."
    )


def _selection(source: Source, held: Mapping[str, Any]) -> list[str]:
    steps = [f"where `{source.where}`"] if source.where else []
    steps += ["drawn by a quota"] if source.quota is not None else []
    if source.join is not None:
        state = held.get("joined_commit") or source.join.revision
        matched = f" ({held['matched']:,} rows have a match)" if "matched" in held else ""
        steps.append(f"joined with {public_url(source.join.path)}{f' at `{state}`' if state else ''}{matched}")
    return [*steps, f"at most {source.limit:,}"] if source.limit is not None else steps


def _made_words(made: Made, name: str, curated: pl.LazyFrame) -> str:
    level = pl.col("meta").str.json_path_match("$.level").cast(pl.Int64).alias("level")
    is_variant = pl.col("meta").str.json_path_match("$.variant_of").is_not_null()
    is_own = (pl.col("source") == name) & pl.col("translation_of").is_null() & ~is_variant
    own = curated.filter(is_own).select(level)
    counts = own.group_by("level").len().sort("level").collect(engine="streaming").iter_rows()
    inside = ", ".join(f"level {number}: {count:,}" for number, count in counts) or "none"
    return f"{made_phrase(made)}; in the set {inside}"


def _with_published(decided: StageResult, exported: StageResult) -> Iterator[tuple[pl.DataFrame, pl.Series]]:
    for shard in range(len(shard_counts(exported.folder))):
        decisions = read_shard(decided.folder, "decisions", shard)
        yield decisions, read_shard(exported.folder, "kept", shard, ["id"])["id"]


def _stage_facts(
    run: Run, part: str, decided: StageResult, exported: StageResult, version: Version
) -> facts.StageFacts:
    band, policy = difficulty_stage(run.recipe, part).band, version.policy
    if part != run.parts[-1]:
        policy = attempt_key(attempts_of(part).folder_in(run, version.verifier)).policy
    inside = pl.when(pl.col("skipped") > 0).then(pl.col("reason").is_null())
    was_judged = pl.col("reason").ne_missing(DropReason.VERIFIER_FAILED.value)
    shards = (
        facts.as_rates(decisions.filter(was_judged).with_columns(foreseen_inside=inside), published)
        for decisions, published in _with_published(decided, exported)
    )
    rates = facts.add_counts(facts.RATES, shards)
    return facts.StageFacts(decided.stage.title, policy, band.min_correct, band.max_pass_rate, band.attempts, rates)


def _compared(first: StageResult, last: StageResult, exported: StageResult) -> facts.StageComparison:
    shards = (
        facts.compare_stages(read_shard(first.folder, "decisions", shard, ["problem", "reason"]), decisions, published)
        for shard, (decisions, published) in enumerate(_with_published(last, exported))
    )
    return facts.comparison_of(facts.add_counts(facts.FATES, shards))


def _limits(recipe: Recipe) -> tuple[str, ...]:
    near = (
        "Near duplicates were found by shared words with the same figures; translations and paraphrases were not."
        if recipe.near_dedup.enabled
        else "Repeated problems were found by their normalised text. Near duplicates were not looked for."
    )
    contamination = (
        "Overlap with the named benchmarks was looked for by the named methods; benchmarks not named may overlap."
        if recipe.decontamination.against or recipe.decontamination.benches
        else "Overlap with benchmarks was not looked for."
    )
    precision = precision_sentence(recipe.statements.disabled) if recipe.flow != "curate-code" else ""
    return near, contamination, *([precision] if precision else [])


def precision_sentence(disabled: tuple[str, ...] = ()) -> str:
    """Return a sentence on the precision of the enabled format rules, if any."""
    figures = []
    for rule, (fired, right) in MEASURED.items():
        if rule not in disabled:
            low, high = wilson(right, fired)
            figures.append(f"{rule} {right / fired:.2f} ({low:.2f} to {high:.2f}) on {fired:,}")
    start = "The format filter's precision on labelled rows, by rule, with its 95 % interval: "
    return f"{start}{', '.join(figures)}." if figures else ""


def _label_note(recipe: Recipe, results: Results, labels: LabelShards) -> str:
    settings, exported = recipe.labels, results[EXPORT]
    accused = queued = 0
    expected, left = list[float](), list[float]()
    for shard, (decisions, published) in enumerate(_with_published(results.decisions[-1], exported)):
        rows = labels.read(shard).select("problem", "wrong_label")
        dropped = rows.join(decisions.filter(_IS_ACCUSED), on="problem", how="semi")["wrong_label"]
        accused += len(dropped)
        queued += int((rows["wrong_label"] >= settings.queue_above).sum())
        expected.append(float(dropped.sum()))
        left.append(float(rows.filter(pl.col("problem").is_in(published.implode()))["wrong_label"].sum()))
    words = f"of which the model itself expects {sum(expected) / max(1, accused):.0%} to be wrong"
    return (
        f"References were weighed by the answers of all policies, with learnt reliabilities: {accused:,} "
        f"problems were dropped as suspected wrong labels at {settings.drop_above:g} or more, {words}; "
        f"{queued:,} with {settings.queue_above:g} or more were queued for people. Of the "
        f"{exported.manifest.kept:,} published "
        f"references the model expects {sum(left):.1f} to be wrong; `goldilocks review --audit` measures it."
    )


def _earlier_policies(curated: pl.LazyFrame, version: Version) -> tuple[str, ...]:
    older = int(curated.filter(pl.col("policy") != version.policy).select(pl.len()).collect().item())
    if not older:
        return ()
    return (
        f"{older:,} of the problems keep the pass rate of an earlier policy, which nothing spoke against when the set "
        "was refreshed; the columns policy and measured_on name it and the day.",
    )


def _decontamination(run: Run, results: Results) -> Section:
    result = results.get(DECONTAMINATION)
    benchmarks = [benchmark for benchmark, _ in benchmarks_of(run)] if result is not None else []
    if result is None or not benchmarks:
        return Section("Decontamination", [])
    methods, problems = run.recipe.decontamination.methods, ["source", "row", "benchmark"]
    hits = read_table(result.folder, "hits", [*problems, "method", "kind"]).unique()
    overlaps = hits.filter(pl.col("kind") == OVERLAP)
    templates = hits.join(overlaps, on=problems, how="anti").unique(problems)
    rows = []
    for benchmark in benchmarks:
        own = overlaps.filter(pl.col("benchmark") == benchmark.name)
        counts = [own.unique(problems).height, *(own.filter(pl.col("method") == method).height for method in methods)]
        counts.append(templates.filter(pl.col("benchmark") == benchmark.name).height)
        rows.append((cell(benchmark.name), cell(benchmark.license), *(f"{count:,}" for count in counts)))
    by_method = (f"by `{method}`" for method in methods)
    titles = ("Benchmark", "Licence", "Problems that overlap", *by_method, "Same template")
    text = (
        "Problems that overlap with one of these benchmarks were dropped. Each hit names the benchmark's row, the "
        "method and the score. The same template means the same wording with other figures: another problem, which "
        'stays unless the recipe has `templates = "drop"`.'
    )
    return Section("Decontamination", [text, Table(titles, rows, "ll".ljust(len(titles), "r"))])
