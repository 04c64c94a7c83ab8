"""The math line: raw rows to a curated set with its data card. Read it from top to bottom."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from flows.pipelines import tasks
from flows.publish import curated_set
from flows.publish.artifacts import show_set
from flows.run.funnel import funnel_rows
from flows.run.run_folder import ALL_TITLES, Done, Run, new_run


@flow(name="curate-math", persist_result=False)
def curate_math(recipe: Path, out: Path, overrides: list[str] | None = None) -> Path:
    """Sources → statements → references → duplicates → overlap → difficulty (one or two stages) → curated set and card.

    What people said of disputed labels is applied before references are checked, where they said anything. Where the
    recipe names a model for it, hard multiple choice is rewritten first, and premises are voted on last.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; what is finished there is not done again.
        overrides: settings changed, as ``key=value``.
    """
    run = new_run(recipe, overrides or [], out)
    filters = [tasks.read_sources(run)]
    if "rewriting" in run.filters:
        filters.append(tasks.rewrite_choices(run, filters[-1]))
    filters.append(tasks.filter_statements(run, filters[-1]))
    if "review" in run.filters:
        filters.append(tasks.apply_reviews(run, filters[-1]))
    filters.append(tasks.check_references(run, filters[-1]))
    filters.append(tasks.find_duplicates(run, filters[-1]))
    if "near_duplicates" in run.filters:
        filters.append(tasks.find_near_duplicates(run, filters[-1]))
    if "contamination" in run.filters:
        filters.append(tasks.find_contamination(run, filters[-1]))
    if "premises" in run.filters:
        filters.append(tasks.judge_premises(run, filters[-1]))
    problems = filters[-1]

    decided: list[Done] = []
    for part in run.stages:  # stage 2 re-grades the entire original set, not the survivors of stage 1
        if part == "stage2" and run.recipe.grader is not None:
            tasks.train_grader(run, decided[0])
        made = tasks.make_attempts(run, part, problems)
        verdicts = tasks.judge_attempts(run, part, problems, made)
        decided.append(tasks.decide(run, part, problems, verdicts))

    exported = tasks.export_problems(run, problems, decided)
    curated = curated_set.publish(run, filters, decided, exported)
    show(run, curated, [*filters, *decided, exported])
    return curated


def show(run: Run, curated: Path, stages: list[Done]) -> None:
    """Funnel, card, plots and changelog as Prefect artifacts."""
    show_set(run.recipe.name, curated, list(funnel_rows(stages, ALL_TITLES)))
