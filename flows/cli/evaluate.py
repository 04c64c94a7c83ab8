"""The models and benches of `goldilocks evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.config import Bench, ModelSettings, RecordedModel
from curation.config.policies import of_domain
from curation.public_urls import public_url
from curation.records import ConfigError
from curation.sources.files import read_rows
from flows.cli.files import mapped_names
from flows.pipelines.refresh import checkpoint_table
from flows.run.benches import load_bench, ready_names
from flows.run.policies import load_model, parse_model
from flows.run.terminal import echo

RECORDED_FIELDS = ("problem", "attempts", "text", "answer", "label", "model", "choices")
"""Columns of recorded attempts, by name or ``--map``."""


def list_benches() -> None:
    """Print the included benches."""
    for name in ready_names("bench"):
        bench, _ = load_bench(name)
        places = [
            f"{public_url(source.path)}{f'@{source.revision[:8]}' if source.revision else ''}"
            for source in bench.sources
        ]
        rows = ", ".join(dict.fromkeys(places))
        echo(f"{name:<20} {bench.attempts} attempts a problem; {bench.description}\n{'':<20} {rows}")


def chosen_policy(
    bench: Bench, bench_folder: Path, policy: Path | None, attempts: Path | None, columns: Sequence[str]
) -> tuple[ModelSettings, Path]:
    """Return the model that the options name, else the bench's, and the base of its paths."""
    if policy is not None and attempts is not None:
        raise ConfigError("give --policy or --attempts, not both")
    if attempts is not None:
        return of_domain(_recorded(attempts, columns), bench.domain), Path()
    own = bench.models[bench.model] if bench.model is not None else None
    if policy is None:
        if own is None:
            raise ConfigError(
                f"bench {bench.name} names no model: give --policy (a model's folder, or a file with a table "
                "[models.NAME]) or --attempts"
            )
        return own, bench_folder
    if policy.is_dir():
        return parse_model(checkpoint_table(policy, own), f"--policy {policy}"), policy.absolute().parent
    settings, folder = load_model(policy)
    return of_domain(settings, bench.domain), folder


def _recorded(path: Path, columns: Sequence[str]) -> RecordedModel:
    subject = f"--attempts {path}"
    mapped = mapped_names(columns, RECORDED_FIELDS)
    row = next(iter(read_rows(path)), {})
    inner = row.get(mapped.get("attempts", "attempts"))
    first = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else {}
    usual = [field for field in RECORDED_FIELDS if field != "model"]  # a column of names is taken only by --map
    there = {field: field for field in usual if field in row or field in first} | mapped
    if "text" not in there and "answer" not in there:
        raise ConfigError(f"{subject}: no column `text` or `answer`; there are {', '.join(row)}: name one with --map")
    about = {"kind": "recorded", "name": f"{path.name.split('.')[0]}@recorded", "path": str(path.absolute())}
    settings = parse_model({**about, "columns": there}, subject)
    assert isinstance(settings, RecordedModel)
    return settings
