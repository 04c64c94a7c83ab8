"""A training recipe written out for prime-rl: its configuration file, and each curated set as the taskset it loads.

    python -m flows.pipelines.prime_rl RECIPE.toml --out DIR

    DIR/rl.toml            what prime-rl's `rl @ DIR/rl.toml` reads
    DIR/taskset/           the set, as `goldilocks export --format verifiers` writes it; put on prime-rl's PYTHONPATH
    DIR/differences.txt    what prime-rl does otherwise than this recipe says

Nothing is started.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import tomli_w

from curation.publish.export_formats import export_set
from curation.records import ConfigError, GoldilocksError
from curation.storage.stages import atomic_write
from flows.run.training import load_train_recipe
from training.engines.placement import place_verl
from training.engines.prime_rl import differences, prime_rl_configuration
from training.recipe import CuratedData


def write_prime_rl(recipe_file: Path, out: Path, overrides: Sequence[str] = ()) -> Path:
    """Write a recipe for prime-rl, and return its configuration file.

    Raises:
        ConfigError: the recipe trains on no curated set, or on several; or its generators wait for each step.
    """
    from training.embedded_model import resolve_model
    from training.engines.verl.run import gpus_per_node, has_experts

    recipe = load_train_recipe(recipe_file, overrides)
    data = recipe.data
    if not isinstance(data, CuratedData) or len(data.folders) != 1:
        raise ConfigError(f"recipe {recipe.name}: prime-rl is given one curated set; name one in data.folders.")
    if recipe.synchronous:
        raise ConfigError(f"recipe {recipe.name}: prime-rl never waits; set collector.max_staleness to 1 or more.")
    home = recipe_file.parent.absolute()
    model = resolve_model(recipe.trained.model, home)
    placement = place_verl(recipe, gpus_per_node(recipe), experts=has_experts(model))
    export_set(home / Path(data.folders[0]).expanduser(), "verifiers", out / "taskset")
    table = prime_rl_configuration(recipe, placement, model.absolute(), out.absolute())
    atomic_write(out / "rl.toml", tomli_w.dumps(table))
    atomic_write(out / "differences.txt", "".join(f"{line}\n" for line in differences(recipe)))
    return out / "rl.toml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, write the files, say where they are, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.pipelines.prime_rl", description="Write a recipe for prime-rl."
    )
    parser.add_argument("recipe", type=Path, metavar="RECIPE.toml")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    options = parser.parse_args(arguments)
    try:
        print(write_prime_rl(options.recipe, options.out, options.overrides))
    except GoldilocksError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
