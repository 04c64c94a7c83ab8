"""Read, change and print curation recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.config import Recipe
from curation.config.loading import load_settings, parse_settings
from curation.sources.hub import COMMIT

PATHS = ("path", "model", "recipe", "train")  # settings that may hold a path, in any table
SERVER = "http://your-server/v1"  # replaces server addresses in printed recipes
MADE = ("levels", "rows_per_level", "reserve_per_level", "first_seed")  # settings of procedural sources alone


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read and check a recipe, with changed settings (``stage1.band.attempts=8``)."""
    return load_settings(Recipe, path, overrides)


def parse_recipe(table: Mapping[str, Any], where: str) -> Recipe:
    """Check a recipe's table; errors name its origin, ``where``."""
    return parse_settings(Recipe, table, f"recipe {where}")


def override_recipe(recipe: Recipe, overrides: Sequence[str]) -> Recipe:
    """Return a recipe with some settings changed."""
    return parse_settings(Recipe, recipe.model_dump(), f"recipe {recipe.name}", overrides)


def recipe_warnings(recipe: Recipe, folder: Path) -> list[str]:
    """Return a warning for each unpinned hub set and each unused model."""
    unpinned = [
        f"source {source.name}{', joined table' if table is not source else ''}: {table.path} is not pinned: "
        f"{f'`{table.revision}` is no commit' if table.revision else 'no revision is named'}, "
        "so its content may change; the card names the commit that is read. Pin it by `revision`."
        for source in recipe.read_sources
        for table in (source, source.join)
        if table is not None and table.kind == "dataset" and not COMMIT.fullmatch(table.revision or "")
        if not table.path.startswith((".", "/", "~")) and not (folder / table.path).exists()
    ]
    unused = [f"[models.{name}]: no setting names this model, so a run never asks it." for name in recipe.unused_models]
    return unpinned + unused


def as_printed(recipe: Recipe, recipe_folder: Path, run_folder: Path) -> str:
    """Return the recipe as TOML for publication, without servers, names of keys and storage.

    Absolute paths become relative to the recipe's folder or `RUN/`, or only a name.
    """
    homes = {run_folder.absolute(): "RUN/", recipe_folder.absolute(): ""}

    def portable(text: str) -> str:
        path = Path(text)
        inside = (f"{name}{path.relative_to(home)}" for home, name in homes.items() if path.is_relative_to(home))
        return next(inside, f"…/{path.name}")

    def walk(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            is_read = key in ("sources", "against") and value.get("kind", "procedural") != "procedural"
            left_out = ("api_key_env", *(MADE if is_read else ()))
            items = {name: item for name, item in value.items() if name not in left_out and item != {}}
            return {name: walk(item, name) for name, item in items.items()}
        if key == "urls":
            return [SERVER]
        if isinstance(value, list):
            return [walk(item, key) for item in value]
        if isinstance(value, str) and key in PATHS:
            return portable(value) if value.startswith("/") else value
        return value

    import tomli_w

    return tomli_w.dumps(walk(recipe.model_dump(mode="json", exclude_none=True, exclude={"storage"}), ""))
