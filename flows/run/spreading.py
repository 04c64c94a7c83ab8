"""The runner that a recipe names, for the length of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from curation.config import Recipe
from flows.run.runner import computing_on


@contextmanager
def spreading(recipe: Recipe) -> Iterator[None]:
    """Let the recipe's runner compute shards for the length of the block.

    Raises:
        ConfigError: the runner is not installed, or cannot be reached.
    """
    if recipe.runner == "local":
        yield
        return
    from flows.run.runner_ray import ray_runner

    with ray_runner() as runner, computing_on(runner):
        yield
