"""Implements `goldilocks evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.config import Bench, ModelSettings, RecordedModel
from curation.config.policies import of_domain
from curation.public_urls import public_url
from curation.records import ConfigError
from curation.sources.files import read_rows
from flows.cli.as_json import print_json
from flows.pipelines.evaluate import FOLDER, default_folder, evaluate
from flows.pipelines.refresh import checkpoint_table
from flows.run.benches import find_file, load_bench, ready_names
from flows.run.policies import load_model, parse_model
from flows.run.terminal import echo
from training.evaluation.ablations import ablation_lines
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
    mapped = dict(column.partition("=")[::2] for column in columns)
    unknown = [field for field in mapped if field not in RECORDED_FIELDS]
    if unknown:
        raise ConfigError(f"--map {unknown[0]}: give one of {', '.join(RECORDED_FIELDS)}, as in text=response")
    row = next(iter(read_rows(path)), {})
    inner = row.get(mapped.get("attempts", "attempts"))
    first = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else {}
    usual = [field for field in RECORDED_FIELDS if field != "model"]  # a column of names is taken only by --map
    there = {field: field for field in usual if field in row or field in first} | mapped
    if "text" not in there and "answer" not in there:
        raise ConfigError(f"{subject}: no column `text` or `answer`; there are {', '.join(row)}: name one by --map")
    about = {"kind": "recorded", "name": f"{path.name.split('.')[0]}@recorded", "path": str(path.absolute())}
    settings = parse_model({**about, "columns": there}, subject)
    assert isinstance(settings, RecordedModel)
    return settings


def run_ablation(name: str, overrides: Sequence[str], out: Path | None, *, as_json: bool = False) -> None:
    """Run or continue an ablation, and print its tables."""
    from flows.pipelines.ablate import ablate  # imports torch

    report = ablate(find_file("ablation", name).absolute(), out, overrides)
    if as_json:
        results = [result.table() for result in report.results]
        print_json({"name": report.ablation.name, "folder": str(report.folder), "results": results})
        return
    echo("\n".join(ablation_lines(report.ablation, report.results)))
    echo(f"\nthe report: {report.folder / 'report.md'}")


def analyse_run(run: Path, size: int, problems: int, attempts: int, *, as_json: bool = False) -> None:
    """Analyse the path of a training run's weights, and print the result."""
    from flows.pipelines.ablate import analyse  # imports torch

    analysis = analyse(run, size, problems, attempts)
    if as_json:
        print_json(analysis.table())
        return
    first, second = analysis.directions.explained
    echo(f"{len(analysis.directions.states)} states; two directions explain {first:.1%} and {second:.1%} of the path")
    best = max(analysis.points, key=lambda point: point.reward)
    trained = next(point for point in analysis.points if point.first == 0 and point.second == 0)
    echo(f"reward {trained.reward:.3f} and {trained.tokens:.0f} tokens at the trained model")
    echo(
        f"reward {best.reward:.3f} and {best.tokens:.0f} tokens at the best point ({best.first:.2f}, {best.second:.2f})"
    )
    if analysis.fit is not None:
        fit = analysis.fit
        echo(
            f"reward = {fit.slope:.3f} ln(length) {fit.intercept:+.3f}, slope {fit.low:.3f} to {fit.high:.3f} (95 %), "
            f"R2 {fit.explained:.2f}"
        )
    echo("\n".join(str(path) for path in analysis.plots))
