"""Implements `goldilocks evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.config import Bench, ModelSettings, RecordedModel
from curation.config.policies import with_domain
from curation.public_urls import public_url
from curation.records import ConfigError
from curation.sources.files import read_rows
from flows.cli.as_json import print_json
from flows.pipelines.evaluate import FOLDER, default_folder, evaluate
from flows.pipelines.refresh import checkpoint_table
from flows.run.benches import load_bench, ready_names
from flows.run.policies import load_model, parse_model
from flows.run.terminal import echo
from training.evaluation.report import report_lines

RECORDED_FIELDS = ("problem", "attempts", "text", "answer", "label", "model", "choices")
"""Columns of recorded attempts, by name or ``--map``."""


def evaluate_bench(
    name: str,
    policy: Path | None,
    attempts: Path | None,
    columns: Sequence[str],
    out: Path | None,
    overrides: Sequence[str],
    against: Path | None,
    trained_on: Sequence[Path],
    *,
    as_json: bool = False,
) -> None:
    """Evaluate a policy or recorded attempts, and print the table."""
    bench, bench_folder = load_bench(name, overrides)
    settings, policy_folder = _policy(bench, bench_folder, policy, attempts, columns)
    folder = out or default_folder(bench, settings)
    result = evaluate(bench, settings, folder, bench_folder, policy_folder, against=against, trained_on=trained_on)
    if as_json:
        print_json(result.table())
        return
    echo("\n".join(report_lines(result.heading, result.evaluation, result.compared)))
    echo(f"\nthe page: {result.folder / FOLDER / 'report.html'}")


def list_benches() -> None:
    """Print the included benches."""
    for name in ready_names("bench"):
        bench, _ = load_bench(name)
        places = [f"{public_url(one.path)}{f'@{one.revision[:8]}' if one.revision else ''}" for one in bench.sources]
        rows = ", ".join(dict.fromkeys(places))
        echo(f"{name:<20} {bench.attempts} attempts a problem; {bench.description}\n{'':<20} {rows}")


def _policy(
    bench: Bench, bench_folder: Path, policy: Path | None, attempts: Path | None, columns: Sequence[str]
) -> tuple[ModelSettings, Path]:
    if policy is not None and attempts is not None:
        raise ConfigError("give --policy or --attempts, not both")
    if attempts is not None:
        return with_domain({"": _recorded(attempts, columns)}, bench.domain)[""], Path()
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
    return with_domain({"": settings}, bench.domain)[""], folder


def _recorded(path: Path, columns: Sequence[str]) -> RecordedModel:
    subject = f"--attempts {path}"
    mapped = dict(column.partition("=")[::2] for column in columns)
    unknown = [field for field in mapped if field not in RECORDED_FIELDS]
    if unknown:
        raise ConfigError(f"--map {unknown[0]}: give one of {', '.join(RECORDED_FIELDS)}, as in text=response")
    row = next(iter(read_rows(path)), {})
    inner = row.get(mapped.get("attempts", "attempts"))
    first = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else {}
    there = {field: field for field in RECORDED_FIELDS if field in row or field in first}
    there.pop("model", None)  # a column of names is taken where it is asked for
    there |= mapped
    table = {
        "kind": "recorded",
        "name": f"{path.name.split('.')[0]}@recorded",
        "path": str(path.absolute()),
        "columns": there,
    }
    if "text" not in there and "answer" not in there:
        raise ConfigError(f"{subject}: no column `text` or `answer`; there are {', '.join(row)}: name one by --map")
    settings = parse_model(table, subject)
    assert isinstance(settings, RecordedModel)
    return settings
