"""Make a variant of each problem per usable language."""

from __future__ import annotations

import json

import polars as pl

from curation.programs import language_variants, tests_agreement
from curation.storage.stages import Shard, read_shard
from flows.run.stage import CODE, Stage, StageResult, StageRun
from flows.stages.base import JUDGING_TABLE


def make_variants(job: StageRun) -> StageResult:
    """Make each problem's language variants; drop problems without any.

    It reads the tests stage's tables, so it comes right after it.
    """
    recipe, problems = job.recipe, job.problems.folder

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        runs = read_shard(problems, "runs", index)
        decisions = read_shard(problems, "decisions", index).filter(pl.col("decision") != "discard")
        deviating = tests_agreement.deviating_solutions(runs)
        voting = runs.join(deviating, on=["problem", "solution"], how="anti")
        judging = read_shard(problems, JUDGING_TABLE, index)
        limits = judging.select("problem", "time_limit_s")
        functions = set(judging.filter(pl.col("function").is_not_null())["problem"])
        languages = language_variants.languages_of(
            voting, decisions.select("problem", "test", "output"), limits, recipe.code.languages
        )
        kept, dropped = language_variants.make_variants(frame, languages, functions)
        return Shard(kept.height + dropped.height, {"kept": kept, "dropped": dropped, "asked": languages})

    folder = job.open(language_variants.VERSION, " ".join(recipe.code.languages), job.problems)
    return job.shard_by_shard(folder, work, is_whole=False)


def language_of(meta: str | None) -> str:
    """Return the programming language of a language variant."""
    return str(json.loads(meta or "{}").get(language_variants.LANGUAGE, "python"))


LANGUAGE_VARIANTS = Stage(
    name="language_variants",
    title="Language variants",
    folder="stages/11-language-variants",
    work=make_variants,
    domains=CODE,
)
