"""Write an evaluation as one HTML file and as lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from pydantic_core import to_json

from training.evaluation.estimators import Estimate
from training.evaluation.scores import Evaluation


@dataclass(frozen=True, slots=True)
class Comparison:
    """Paired differences to another evaluation; ``remark`` names causes other than the weights."""

    policy: str
    differences: Mapping[str, Estimate]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A policy's evaluation; ``about`` describes prompts and sampling, ``left_out`` what does not count."""

    bench: str
    policy: str
    prompt: str
    about: tuple[str, ...]
    left_out: tuple[str, ...]
    evaluation: Evaluation
    compared: Comparison | None = None

    @property
    def remarks(self) -> list[str]:
        """Return the basis of the figures."""
        evaluation = self.evaluation
        counted = f"{evaluation.problems:,} problems, {evaluation.attempts:,} attempts; intervals of 95 % over problems"
        if evaluation.failed:
            counted += f"; the verifier failed on {evaluation.failed:,} attempts, which do not count"
        if evaluation.unjudged:
            counted += f"; {evaluation.unjudged:,} problems have no judged attempt"
        return [counted, *self.left_out]


def with_interval(estimate: Estimate, *, signed: bool = False) -> str:
    """Return an estimate with its interval: ``0.420 (0.360 to 0.480)``."""
    form = "+.3f" if signed else ".3f"
    if math.isnan(estimate.mean):
        return "–"
    if math.isnan(estimate.low):
        return format(estimate.mean, form)
    return f"{estimate.mean:{form}} ({estimate.low:{form}} to {estimate.high:{form}})"


def verdict(estimate: Estimate) -> str:
    """Return ``better`` or ``worse`` only if the interval excludes 0."""
    if not estimate.excludes_zero:
        return "no difference shown"
    return "better" if estimate.mean > 0 else "worse"


@dataclass(frozen=True, slots=True)
class _Table:
    """A report's table; a page draws a bar per row."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    bars: Sequence[Estimate | None] = ()


def _tables(evaluation: Evaluation, compared: Comparison | None) -> list[_Table]:
    rows, bars = [("pass@1", with_interval(evaluation.pass_1))], [evaluation.pass_1]
    for name, by_k in (("pass", evaluation.pass_k), ("maj", evaluation.majority_k)):
        for k, estimate in by_k.items():
            skipped = f", {evaluation.skipped[k]} problems left out" if evaluation.skipped[k] else ""
            rows.append((f"{name}@{k}", with_interval(estimate) + skipped))
            bars.append(estimate)
    if (tokens := evaluation.tokens) is not None:
        reach = "" if math.isnan(tokens.low) else f" ({tokens.low:,.0f} to {tokens.high:,.0f})"
        rows.append(("tokens", f"{tokens.mean:,.0f}{reach}"))
    shares = {
        "cut off": evaluation.cut_share,
        "format kept": evaluation.format_share,
        "one language": evaluation.language_share,
    }
    rows += [(name, f"{share:.1%}") for name, share in shares.items() if share is not None]
    tables = [_Table("", ("measure", "value"), rows, [*bars, *[None] * (len(rows) - len(bars))])]
    if compared is not None:
        title = f"Compared with {compared.policy}, paired over {compared.differences['pass@1'].count:,} problems"
        cells = [
            (name, with_interval(estimate, signed=True), verdict(estimate))
            for name, estimate in compared.differences.items()
        ]
        tables.append(_Table(title, ("measure", "difference", ""), cells))
    if evaluation.languages:
        rows_by_language: list[tuple[str, ...]] = []
        for item in evaluation.languages:
            share = f"{item.one_language:.1%}" if item.one_language is not None else "–"
            difference = with_interval(item.difference, signed=True) if item.difference is not None else ""
            rows_by_language.append(
                (item.lang, f"{item.pass_1.count:,}", with_interval(item.pass_1), share, difference)
            )
        columns = ("language", "problems", "pass@1", "one language", "to English, paired")
        tables.append(_Table("Languages", columns, rows_by_language, [item.pass_1 for item in evaluation.languages]))
    return tables


def report_json(report: Report) -> str:
    """Return the figures as JSON; unknown ones are null."""
    named = {"bench": report.bench, "policy": report.policy, "prompt": report.prompt}
    table = {**named, **asdict(report.evaluation), "compared": report.compared}
    return to_json(table, indent=1, inf_nan_mode="null").decode() + "\n"


def report_lines(report: Report) -> list[str]:
    """Return the evaluation as lines for a terminal."""
    lines = [f"{report.bench}: {report.policy}", *report.remarks]
    lines += [report.compared.remark] if report.compared is not None and report.compared.remark else []
    for table in _tables(report.evaluation, report.compared):
        lines += ["", *([table.title] if table.title else [])]
        rows = [table.head, *table.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        padded = (zip(row, widths, strict=True) for row in rows)
        lines += ["  " + "  ".join(cell.ljust(width) for cell, width in row).rstrip() for row in padded]
    return lines


def report_page(report: Report, problems: pl.DataFrame) -> str:
    """Return the evaluation as an HTML page.

    Args:
        problems: ``problem``, ``statement``, ``correct``, ``attempts`` and ``tokens``, in the order to show.
    """
    from jinja2 import StrictUndefined, Template

    text = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    template = Template(text, autoescape=True, undefined=StrictUndefined)
    tables = _tables(report.evaluation, report.compared)
    return f"{template.render(report=report, tables=tables, problems=problems.to_dicts())}\n"
