"""Train without Prefect, in each process that torchrun starts.

``torchrun --nproc-per-node N -m flows.pipelines.train RECIPE.toml --out DIR``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from curation.records import GoldilocksError
from flows.run.training import check, train
from training.optimisation.distributed import end_process


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line asks, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m flows.pipelines.train", description="Train by a recipe.")
    parser.add_argument("recipe", nargs="?", type=Path, metavar="RECIPE.toml")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--resume", type=Path, metavar="DIR")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument("--check", action="store_true", help="only try whether the model can be trained so")
    parser.add_argument("--server", action="append", default=[], metavar="URL", dest="servers", help="which generates")
    options = parser.parse_args(arguments)
    out, resume = options.resume or options.out, options.resume is not None
    try:
        if options.check:
            lines = check(options.recipe, out, options.overrides, resume=resume)
        else:
            made = train(options.recipe, out, options.overrides, resume=resume, servers=options.servers)
            lines = [str(made)]
    except GoldilocksError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    end_process(main())
