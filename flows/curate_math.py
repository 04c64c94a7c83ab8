"""The math line: raw rows to a curated set with its data card. Read it from top to bottom."""

from __future__ import annotations

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from flows import publish, tasks
from flows.funnel import funnel_rows
from flows.run_folder import TITLES, Done, Run, new_run


@flow(name="curate-math", persist_result=False)
def curate_math(recipe: Path, out: Path, overrides: list[str] | None = None) -> Path:
    """Sources → statements → references → duplicates → overlap → difficulty (one or two stages) → curated set and card.

    What people said of disputed labels is applied before references are checked, where they said anything.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; what is finished there is not done again.
        overrides: settings changed, as ``key=value``.
    """
    run = new_run(recipe, overrides or [], out)
    filters = [tasks.read_sources(run)]
    filters.append(tasks.filter_statements(run, filters[-1]))
    if "review" in run.filters:
        filters.append(tasks.apply_reviews(run, filters[-1]))
    filters.append(tasks.check_references(run, filters[-1]))
    filters.append(tasks.find_duplicates(run, filters[-1]))
    if "near_duplicates" in run.filters:
        filters.append(tasks.find_near_duplicates(run, filters[-1]))
    if "contamination" in run.filters:
        filters.append(tasks.find_contamination(run, filters[-1]))
    problems = filters[-1]

    decided = []
    for part in run.stages:  # stage 2 re-grades the entire original set, not the survivors of stage 1
        made = tasks.make_attempts(run, part, problems)
        verdicts = tasks.judge_attempts(run, part, problems, made)
        decided.append(tasks.decide(run, part, problems, verdicts))

    exported = tasks.export_problems(run, problems, decided)
    curated = publish.publish(run, filters, decided, exported)
    show(run, curated, [*filters, *decided, exported])
    return curated


def show(run: Run, curated: Path, stages: list[Done]) -> None:
    """The funnel and the card as Prefect artifacts."""
    rows = [
        {"stage": row.title, "in": row.rows_in, "kept": row.kept, "dropped": row.rows_in - row.kept}
        for row in funnel_rows(stages, TITLES)
    ]
    create_table_artifact(table=rows, key=_key(run, "funnel"), description=f"Funnel of {run.recipe.name}")
    card = (curated / "README.md").read_text(encoding="utf-8")
    about = f"Data card of {run.recipe.name}"
    create_markdown_artifact(markdown=_for_a_page(card), key=_key(run, "card"), description=about)


def _for_a_page(card: str) -> str:
    """The card without its YAML header and without pictures, which lie in a folder that the page cannot see."""
    text = card.split("\n---\n", 1)[-1]
    return "\n".join(line for line in text.splitlines() if not line.startswith("!["))


def _key(run: Run, what: str) -> str:
    """An artifact's key holds lower-case letters, digits and dashes only."""
    return f"{what}-{run.recipe.name}".replace(".", "-").replace("_", "-")
