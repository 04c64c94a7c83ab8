"""The math flow: raw rows to a curated set. `flows.pipelines.by_recipe` lists its stages, one line each.

    prefect deploy flows/curate_math.py:curate_math --name nightly --pool my-pool
    curate_math.serve(name="nightly", cron="0 3 * * *", parameters={"recipe": "my_set.toml"})

A run that was killed resumes in the run folder when the flow is run again.

Annotations here are no strings: `serve` pickles the flow, and its copy could not find their names.
"""

from pathlib import Path

from prefect import flow

from flows.pipelines.by_recipe import publish_set, run_stages
from flows.serve.flow_runs import RETRIES, RETRY_S, curation_run, run_name


@flow(name="curate-math", flow_run_name=run_name, retries=RETRIES, retry_delay_seconds=RETRY_S, persist_result=False)
def curate_math(recipe: Path, out: Path | None = None, overrides: list[str] | None = None) -> Path | None:
    """Curate a math set by its recipe; emit an event for a new version.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; runs/NAME by default.
        overrides: settings changed, as ``key=value``.
    """
    with curation_run(recipe, out, overrides) as run:
        if run is None:
            return None  # another run holds the folder
        results = run_stages(run)  # one task per stage
        return publish_set(run, results)
