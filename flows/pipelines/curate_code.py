"""The code line: raw rows or problem packages to a curated set with its data card. Read it from top to bottom."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from flows.pipelines import tasks
from flows.pipelines.curate_math import show
from flows.publish import curated_set
from flows.run.run_folder import new_run


@flow(name="curate-code", persist_result=False)
def curate_code(recipe: Path, out: Path, overrides: list[str] | None = None) -> Path:
    """Sources → filter → duplicates → overlap → solutions × tests → tests → twins → difficulty → curated set and card.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; what is finished there is not done again.
        overrides: settings changed, as ``key=value``.
    """
    run = new_run(recipe, overrides or [], out)
    filters = [tasks.read_programs(run)]
    filters.append(tasks.filter_programs(run, filters[-1]))
    filters.append(tasks.find_duplicates(run, filters[-1]))
    if "near_duplicates" in run.filters:
        filters.append(tasks.find_near_duplicates(run, filters[-1]))
    if "contamination" in run.filters:
        filters.append(tasks.find_contamination(run, filters[-1]))

    matrix = tasks.run_matrix(run, filters[-1])
    asked = tasks.ask_generators(run, filters[-1], matrix) if "generators" in run.filters else None
    tested = tasks.make_tests(run, filters[-1], matrix, asked)
    problems = tasks.make_twins(run, tested)
    filters += [tested, problems]

    decided = []
    for part in run.stages:  # stage 2 re-grades the entire original set, not the survivors of stage 1
        made = tasks.make_attempts(run, part, problems)
        verdicts = tasks.judge_attempts(run, part, problems, made)
        decided.append(tasks.decide(run, part, problems, verdicts))

    exported = tasks.export_problems(run, problems, decided)
    curated = curated_set.publish(run, filters, decided, exported)
    show(run, curated, [*filters, *decided, exported])
    return curated
