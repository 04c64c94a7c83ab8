"""One thin Prefect task per stage: a name, and nothing else.

A stage's own folder remembers what is finished; Prefect's caches and result storage stay out of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.publish import curated_set
from flows.run.run_folder import CODE_TITLES, TITLES, Done
from flows.stages import code_stages, code_tests, difficulty_stages, filter_stages, grader, model_stages

P = ParamSpec("P")


def stage_task(name: str, work: Callable[P, Done], run_name: str | None = None) -> Callable[P, Done]:
    """A Prefect task around a stage; ``run_name`` may hold the stage's parameters, as in ``{part}: attempts``."""
    return task(name=name, task_run_name=run_name or name, cache_policy=NO_CACHE, persist_result=False)(work)


read_sources = stage_task(TITLES["sources"], filter_stages.read_sources)
rewrite_choices = stage_task(TITLES["rewriting"], model_stages.rewrite_choices)
filter_statements = stage_task(TITLES["statements"], filter_stages.filter_statements)
apply_reviews = stage_task(TITLES["review"], filter_stages.apply_reviews)
check_references = stage_task(TITLES["references"], filter_stages.check_references)
find_duplicates = stage_task(TITLES["duplicates"], filter_stages.find_duplicates)
find_near_duplicates = stage_task(TITLES["near_duplicates"], filter_stages.find_near_duplicates)
find_contamination = stage_task(TITLES["contamination"], filter_stages.find_contamination)
judge_premises = stage_task(TITLES["premises"], model_stages.judge_premises)
make_attempts = stage_task("attempts", difficulty_stages.make_attempts, "{part}: attempts")
judge_attempts = stage_task("verdicts", difficulty_stages.judge_attempts, "{part}: verdicts")
decide = stage_task("decisions", difficulty_stages.decide, "{part}: decisions")
train_grader = task(name="train the grader", cache_policy=NO_CACHE, persist_result=False)(grader.train_grader)
export_problems = stage_task(TITLES["export"], curated_set.export_problems)

read_programs = stage_task(TITLES["sources"], code_stages.read_programs)
filter_programs = stage_task(CODE_TITLES["programs"], code_stages.filter_programs)
run_matrix = stage_task(CODE_TITLES["matrix"], code_stages.run_matrix)
ask_generators = stage_task(CODE_TITLES["generators"], code_tests.ask_generators)
make_tests = stage_task(CODE_TITLES["tests"], code_tests.make_tests)
make_twins = stage_task(CODE_TITLES["twins"], code_stages.make_twins)
