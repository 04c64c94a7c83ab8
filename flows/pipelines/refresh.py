"""The refresh: a new checkpoint judges again what has become uncertain, and the set gets its next version.

Problems are chosen by `curation.refreshing`; they are sampled, judged and decided on as in the line's last stage, with
the same band; all others keep their pass rate with its policy and its day. Everything of a refresh lies in the folder
of the version that it makes (`flows.publish.versions`); one that was killed goes on there when it is started again.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from prefect import flow
from rich.console import Console

from curation import difficulty, export, refreshing, review, versions
from curation.config import LivePolicy, Recipe, TorchPolicySettings, VllmPolicy
from curation.records import JUDGED, ConfigError, Outcome, PolicyError, SourceError, StoreError
from curation.store import Shard, Stage, file_digest, locked, read_shard, read_table
from flows.pipelines import tasks
from flows.publish import curated_set
from flows.publish.artifacts import show_set
from flows.publish.versions import (
    Cause,
    RefreshedRun,
    Version,
    decisions_of,
    held,
    measured_on,
    place_of,
    refreshed,
    settle,
    summary,
)
from flows.run.funnel import MEASURING, status
from flows.run.policies import open_policy
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Done, Run, difficulty_stage, drive, found, inputs, open_run, shard_counts
from flows.stages.difficulty_stages import made_attempts, stopping_rule, trusting_people

MODELS = ("", "model", "hf")
"""Where in a checkpoint's folder the weights in Hugging Face format may lie."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh came to. ``chosen`` counts the problems judged again by why; ``version`` is the set's newest.

    ``is_repeated`` says that this very refresh had made the version before, so that nothing was done.
    """

    version: Version
    is_new: bool
    chosen: Mapping[str, int]
    cost: Mapping[str, int]
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """The finished line behind a set."""

    run: Run
    filters: Sequence[Done]
    decided: Sequence[Done]
    newest: Version
    before: Version | None


@flow(name="refresh", persist_result=False)
def refresh(folder: Path, policy: Path, attempts: Path | None = None) -> Refreshed:
    """Judge again what has become uncertain, publish the next version, say what it took and what changed.

    Args:
        folder: of a finished run.
        policy: a checkpoint's folder, or a TOML file with a table ``policy`` as in a recipe.
        attempts: attempts that training made since, in the columns of `curation.refreshing.TRAINED`.
    """
    folder = folder.absolute()
    with locked(folder):
        line = _line(open_run(folder))
        recipe, home = with_policy(line.run, policy)
        if curated_set.published_version(line.run) != line.newest.number and line.newest.origin == "refresh":
            done = _show(line, line.newest)  # a refresh that was killed while it published
            name = open_policy(difficulty_stage(recipe, line.run.stages[-1]).policy, home).key.policy
            if name == line.newest.policy:
                return done
        if _is_repeated(refreshed(Run(folder, recipe, home), line.newest), line, attempts):
            return Refreshed(line.newest, False, {}, {}, is_repeated=True)
        run = RefreshedRun(folder, recipe, home, place_of(folder, line.newest.number + 1))
        chosen = choose_problems(run, line, attempts)
        if not chosen.manifest.kept:
            return Refreshed(line.newest, False, {}, {})
        part = run.stages[-1]
        made = tasks.make_attempts(run, part, chosen)
        verdicts = tasks.judge_attempts(run, part, chosen, made)
        return _publish(run, line, chosen, made, verdicts)


def choose_problems(run: RefreshedRun, line: _Line, attempts: Path | None) -> Done:
    """The problems to judge again, as a stage in the shards of the line; beside them, why."""
    band = difficulty_stage(run.recipe, run.stages[-1]).band
    trained = read_trained(attempts) if attempts is not None else refreshing.TRAINED.to_frame()
    old, number = decisions_of(run.folder, line.newest.number), line.newest.number + 1
    rows = refreshing.choose(old, trained, band, run.recipe.refresh, number, _policy_of(run))
    problems = line.filters[-1]

    def work(index: int) -> Shard:
        frame = read_shard(problems.folder, "kept", index).join(rows, left_on="id", right_on="problem", how="inner")
        why = frame.select(problem="id", why="why")
        return Shard(frame.height, {"kept": frame.drop("why"), "why": why})

    counts = shard_counts(problems.folder)
    stage = _choosing(run, line, line.newest, attempts)
    return drive(stage, ((rows, partial(work, index)) for index, rows in enumerate(counts)), total=sum(counts))


def _choosing(run: RefreshedRun, line: _Line, before: Version, attempts: Path | None) -> Stage:
    """The stage that chooses, for the version after ``before``; its settings are all that a refresh depends on."""
    band = difficulty_stage(run.recipe, run.stages[-1]).band
    seen = file_digest(attempts) if attempts is not None else ""
    made_by = f"{run.recipe.refresh.digest()} {band.digest()} {_policy_of(run)} {seen}"
    made_from = inputs(line.filters[-1], version=before.digest)
    return Stage(run.place / "chosen", "chosen", refreshing.VERSION, made_by, made_from)


def _is_repeated(run: RefreshedRun, line: _Line, attempts: Path | None) -> bool:
    """Whether the newest version came of this very refresh: the same policy, settings and attempts of training.

    Without this, the next share of the probed and retried would be judged by a policy that nobody has trained since.
    """
    if line.newest.origin != "refresh" or line.before is None or (attempts is not None and not attempts.is_file()):
        return False
    return _choosing(run, line, line.before, attempts).manifest() is not None


def _policy_of(run: RefreshedRun) -> str:
    """Who judges again, as attempts are filed: ``model@revision``."""
    return open_policy(difficulty_stage(run.recipe, run.stages[-1]).policy, run.recipe_folder).key.policy


def _publish(run: RefreshedRun, line: _Line, chosen: Done, made: Done, verdicts: Done) -> Refreshed:
    """Decide, make the next version of old and new decisions, and publish it."""
    part, old = run.stages[-1], decisions_of(run.folder, line.newest.number)
    settings = difficulty_stage(run.recipe, part)
    rule = stopping_rule(settings)
    names = read_table(chosen.folder, "kept", ["id"])["id"]
    policy = _policy_of(run)
    stopped = read_table(verdicts.folder, "stopped")["problem"]
    rates = difficulty.pass_rates(names, read_table(verdicts.folder, "verdicts"), policy, rule, stopped)
    new = trusting_people(rates, settings, part, review.read_verdicts(run.folder))
    new = new.with_columns(measured_on=pl.lit(measured_on(run, part)))
    table = merged(old, new, line, run.recipe)
    cost = {
        "problems": len(names),
        **_spent(run, made, verdicts),
        "kept_rates": table.height - len(names),
    }
    root = line.newest.root
    version = settle(run, table, verdicts.folder.name, Cause("refresh", policy, root, cost))
    if version.number == line.newest.number:
        return Refreshed(version, False, _why(chosen.folder), cost)
    return _show(line, version)


def _show(line: _Line, version: Version) -> Refreshed:
    """Publish a refreshed version, and show it on Prefect's page."""
    run = refreshed(line.run, version)
    curated = curated_set.republish(line.run, version, line.filters, line.decided)
    seen = [one.row for one in status(run, version.verifier) if one.finished]
    funnel = [row for row in seen if row.stage.partition(".")[2] not in MEASURING]
    show_set(line.run.recipe.name, curated, funnel)
    return Refreshed(version, True, _why(run.place / "chosen"), version.cost)


def _spent(run: RefreshedRun, made: Done, verdicts: Done) -> dict[str, int]:
    """The attempts that count and their tokens, however often the refresh was killed in between."""
    counted = read_table(verdicts.folder, "verdicts").select("problem", "index")
    held = made_attempts(run, made).read(counted["problem"].unique().to_list(), ["problem", "index", "tokens"])
    tokens = held.join(counted, on=["problem", "index"], how="semi")["tokens"].sum()
    return {"attempts": counted.height, "tokens": int(tokens or 0)}


def _why(chosen: Path) -> dict[str, int]:
    return dict(Counter(read_table(chosen, "why")["why"].to_list()))


def merged(old: pl.DataFrame, new: pl.DataFrame, line: _Line, recipe: Recipe) -> pl.DataFrame:
    """The decisions of the next version: the new ones in place of the old, and who stands in a set of its size.

    Args:
        old: `curation.versions.KEPT` rows.
        new: the same without ``published``, of problems that are in ``old``.
    """
    order = old.select("problem")
    rest = old.drop("published").join(new, on="problem", how="anti")
    both = order.join(pl.concat([rest, new.select(rest.columns)]), on="problem", how="left", maintain_order="left")
    index = read_table(line.filters[-1].folder, "kept", ["id", "group", "source", "weight"])
    index = index.join(both.filter("keep"), left_on="id", right_on="problem", how="semi", maintain_order="left")
    leaving = export.over_quota(index, recipe.export.size, recipe.seed) if index.height else {}
    stays = pl.col("keep") & ~pl.col("problem").is_in(list(leaving))
    return both.with_columns(published=stays).select(versions.KEPT.names()).cast(versions.KEPT)


def with_policy(run: Run, path: Path) -> tuple[Recipe, Path]:
    """The run's recipe with another policy in its last stage, and the folder that the policy's paths refer to.

    Raises:
        ConfigError, PolicyError: there is no such policy, or it cannot be meant.
    """
    part = run.stages[-1]
    table = run.recipe.model_dump(mode="json")
    table["grader"] = None  # it has been trained; what it became stands in the stage
    if path.is_dir():
        table[part]["policy"] = _checkpoint(path, difficulty_stage(run.recipe, part).policy)
        return parse_recipe(table, str(path)), path.absolute().parent
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"--policy {path}: there is no such folder or file; name a checkpoint.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--policy {path}: not TOML ({error}).") from error
    if set(given) != {"policy"} or not isinstance(given["policy"], dict):
        raise ConfigError(f"--policy {path}: write one table, [policy], as in a recipe's [stage2.policy].")
    table[part]["policy"] = given["policy"]
    return parse_recipe(table, str(path)), path.absolute().parent


def _checkpoint(path: Path, like: object) -> dict[str, Any]:
    """A checkpoint's folder as a policy's table, asked and decoded like the policy before where that was live.

    vLLM samples it where that is installed; else, or where torch did so before, torch does.
    """
    home = next((path / name for name in MODELS if (path / name / "config.json").is_file()), None)
    if home is None:
        raise PolicyError(f"--policy {path}: the folder holds no model (no config.json); name a checkpoint.")
    quick = importlib.util.find_spec("vllm") is not None and not isinstance(like, TorchPolicySettings)
    kind: type[LivePolicy] = VllmPolicy if quick else TorchPolicySettings
    fields = set(kind.model_fields) if isinstance(like, kind) else {"prompt", "decoding"}
    same = like.model_dump(mode="json", include=fields - {"model", "revision"}) if isinstance(like, LivePolicy) else {}
    return {**same, "kind": "vllm" if quick else "torch", "model": str(home.absolute())}


def read_trained(path: Path) -> pl.DataFrame:
    """Attempts that training made, in the `curation.refreshing.TRAINED` schema.

    Args:
        path: .jsonl or .parquet, one row a problem and step, or one row an attempt with its ``outcome``, as in the
            trainer's own ``attempts.jsonl``; an attempt that kept no form has none and counts as not correct.

    Raises:
        SourceError: the file is not there, not readable, or lacks a column.
    """
    try:
        frame = pl.read_parquet(path, glob=False) if path.suffix == ".parquet" else pl.read_ndjson(path)
        if "outcome" in frame.columns:
            judged = frame.filter(pl.col("outcome").is_null() | pl.col("outcome").is_in([one.value for one in JUDGED]))
            right = (pl.col("outcome") == Outcome.CORRECT.value).fill_null(False)
            frame = judged.group_by("problem", "step", maintain_order=True).agg(correct=right.sum(), judged=pl.len())
        return frame.select(refreshing.TRAINED.names()).cast(refreshing.TRAINED)
    except FileNotFoundError as error:
        raise SourceError(f"--attempts {path}: there is no such file.") from error
    except pl.exceptions.PolarsError as error:
        wanted = ", ".join(refreshing.TRAINED.names())
        raise SourceError(f"--attempts {path}: cannot be read with the columns {wanted} ({error}).") from error


def _line(run: Run) -> _Line:
    """The stages of a finished run as they lie on disk.

    Raises:
        StoreError: the run is not finished, or its recipe has changed since.
    """
    curated_set.restore(run.folder)
    known = held(run.folder)
    if not known or not curated_set.is_published(run):
        raise StoreError(f"{run.folder} holds no finished run of its recipe; finish it with `goldilocks run`.")
    newest = known[-1]
    verifier = next(version.verifier for version in known if version.digest == newest.root)
    stages = [found(run, name) for name in run.filters]
    decided = [found(run, f"{part}.decisions", verifier) for part in run.stages]
    whole = [done for done in (*stages, *decided) if done is not None]
    if len(whole) < len(stages) + len(decided):
        raise StoreError(f"{run.folder}: stages behind the set are missing; make them with `goldilocks run`.")
    before = known[-2] if len(known) > 1 else None
    return _Line(run, whole[: len(stages)], whole[len(stages) :], newest, before)


def refresh_run(folder: Path, policy: Path, attempts: Path | None = None) -> Refreshed:
    """`goldilocks refresh`: the flow, with a Prefect API of its own where the user has none, and what it came to."""
    from flows.serve.server import prefect_api

    with prefect_api():
        done = refresh.with_options(flow_run_name=folder.absolute().name)(folder, policy, attempts)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for line in told(done):
        console.print(line)
    return done


def told(done: Refreshed) -> list[str]:
    """What a refresh did, in lines."""
    if done.is_repeated:
        return [f"judged already with this policy, so nothing was done: {summary(done.version)}"]
    if not done.chosen:
        return [f"nothing has become uncertain: {summary(done.version)}"]
    why = ", ".join(f"{name} {count:,}" for name, count in sorted(done.chosen.items()))
    lines = [
        f"judged again: {done.cost['problems']:,} problems ({why}) with {done.cost['attempts']:,} new attempts, "
        f"{done.cost['tokens']:,} tokens; {done.cost['kept_rates']:,} problems keep their pass rates",
        summary(done.version),
    ]
    return lines if done.is_new else [*lines, "no new version: nothing is different"]
