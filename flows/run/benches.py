"""Find and read benches by name or file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.config import Bench, LiveModel, Pick, ProblemColumns, Recipe, Source
from curation.config.loading import load_settings
from curation.config.policies import ModelSettings
from curation.records import ConfigError
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run

_FLOWS = Path(__file__).parents[1]
FOLDERS = {"bench": _FLOWS / "benches", "ablation": _FLOWS / "ablations"}
"""Folders of the shipped files."""

BENCHED = "measured"  # name of the measured model in its recipe


@dataclass(frozen=True, slots=True)
class BenchRun(Run):
    """A run that measures a policy on a bench."""

    bench: Bench


def ready_names(kind: str) -> list[str]:
    """Return the names of the shipped benches or ablations."""
    return sorted(path.stem for path in FOLDERS[kind].glob("*.toml"))


def find_file(kind: str, name: str, folder: Path = Path()) -> Path:
    """Return the file of a bench or ablation, by its name or path.

    Raises:
        ConfigError: there is neither.
    """
    path = FOLDERS[kind] / f"{name}.toml"
    if "/" in name or not path.is_file():
        path = folder / Path(name).expanduser()
    if not path.is_file():
        names = ", ".join(ready_names(kind))
        raise ConfigError(
            f"{kind} {name}: there is no such file, and no ready {kind} of this name; there are: {names}."
        )
    return path


def load_bench(name: str, overrides: Sequence[str] = (), folder: Path = Path()) -> tuple[Bench, Path]:
    """Return a bench by name or path, and the base of its paths."""
    path = find_file("bench", name, folder)
    return load_settings(Bench, path, overrides), path.parent.absolute()


def bench_run(bench: Bench, policy: ModelSettings, folder: Path, bench_folder: Path) -> BenchRun:
    """Return a run that keeps problems of any pass rate."""
    asked = policy.model_copy(update={"decoding": bench.decoding}) if isinstance(policy, LiveModel) else policy
    dumped = {name: getattr(bench, name).model_dump() for name in ("verify", "code")}
    table: dict[str, Any] = {
        "name": bench.name,
        "flow": f"curate-{bench.domain}",
        "sources": [source.model_dump() for source in bench.sources],
        "workers": bench.workers,
        "models": {BENCHED: asked.model_dump()},
        "stage1": {
            "model": BENCHED,
            "band": {
                "attempts": bench.attempts,
                "min_correct": 0,
                "max_pass_rate": 1.0,
                "wrong_label_share": 1.0,
                "min_judged": 1,
            },
            "sampling": {"early_stopping": False},
        },
        **dumped,
    }
    recipe: Recipe = parse_recipe(table, f"of bench {bench.name}")
    return BenchRun(folder, recipe, bench_folder, bench)


def as_benchmarks(name: str, folder: Path) -> list[tuple[Source, Path]]:
    """Return a bench's sources for decontamination, and the base of their paths.

    Raises:
        ConfigError: the bench or its statements' column is missing.
    """
    bench, home = load_bench(name, folder=folder)
    benchmarks = []
    for source in bench.sources:
        column = source.columns.statement
        field = column.path if isinstance(column, Pick) else column
        if field is None or source.kind == "kattis":
            raise ConfigError(f"bench {name}: source {source.name} has no column of statements to look for.")
        shared = source.model_dump(include={"kind", "path", "subset", "split", "revision", "files", "license"})
        columns = ProblemColumns(statement=field)
        benchmarks.append((Source(name=f"{bench.name}/{source.name}", columns=columns, **shared), home))
    return benchmarks
