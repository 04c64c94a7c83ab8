"""One thin Prefect task per stage: a name, and nothing else.

A stage's own folder remembers what is finished; Prefect's caches and result storage stay out of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows import difficulty_stages, filter_stages, publish
from flows.run_folder import TITLES, Done

P = ParamSpec("P")


def stage_task(name: str, work: Callable[P, Done], run_name: str | None = None) -> Callable[P, Done]:
    """A Prefect task around a stage; ``run_name`` may hold the stage's parameters, as in ``{part}: attempts``."""
    return task(name=name, task_run_name=run_name or name, cache_policy=NO_CACHE, persist_result=False)(work)


read_sources = stage_task(TITLES["sources"], filter_stages.read_sources)
filter_statements = stage_task(TITLES["statements"], filter_stages.filter_statements)
apply_reviews = stage_task(TITLES["review"], filter_stages.apply_reviews)
check_references = stage_task(TITLES["references"], filter_stages.check_references)
find_duplicates = stage_task(TITLES["duplicates"], filter_stages.find_duplicates)
find_near_duplicates = stage_task(TITLES["near_duplicates"], filter_stages.find_near_duplicates)
find_contamination = stage_task(TITLES["contamination"], filter_stages.find_contamination)
make_attempts = stage_task("attempts", difficulty_stages.make_attempts, "{part}: attempts")
judge_attempts = stage_task("verdicts", difficulty_stages.judge_attempts, "{part}: verdicts")
decide = stage_task("decisions", difficulty_stages.decide, "{part}: decisions")
export_problems = stage_task(TITLES["export"], publish.export_problems)
