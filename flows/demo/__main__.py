"""`make demo`: runs the pipelines on sample data and reports planted defects.

``python -m flows.demo math``, ``code`` or ``loop`` runs one part.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from curation.records import ConfigError, GoldilocksError
from flows.cli.commands import run_recipe
from flows.demo import report
from flows.demo.code import report as code
from flows.demo.live import report as live
from flows.run.terminal import SafeConsole

HERE = Path(__file__).parent
RECIPE = HERE.parent / "recipes" / "demo_math.toml"


def _show_math(run: Path, console: Console) -> None:
    report.show(HERE / "planted.jsonl", report.row_outcomes(run / "curated"), console)


PARTS: dict[str, tuple[Path, Callable[[Path, Console], None]]] = {
    "math": (RECIPE, _show_math),
    "code": (code.RECIPE, code.show),
    "loop": (live.RECIPE, live.show),
}
"""Each part's recipe, and what reports on its run."""


def main(names: Sequence[str]) -> None:
    """Run the named parts, by default all."""
    console = SafeConsole(highlight=True, markup=True, soft_wrap=False)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ConfigError(f"the demo has no part `{unknown[0]}`; it has: {', '.join(PARTS)}.")
    for name in names or PARTS:
        console.rule(f"demo-{name}")
        recipe, show = PARTS[name]
        run = Path("runs") / f"demo-{name}"
        run_recipe(recipe, [], run)
        console.print()
        show(run, console)
        console.print(f"\nThe data card: {run / 'curated' / 'README.md'}", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except GoldilocksError as error:
        sys.exit(f"goldilocks: {error}")
