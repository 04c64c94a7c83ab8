"""Write an evaluation as one HTML file and as lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from training.evaluation.estimators import Estimate
from training.evaluation.scores import Evaluation

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1d2733;background:#fff}
h1{font-size:1.5rem;margin-bottom:0}h2{font-size:1.1rem;margin-top:2rem}p.sub{color:#5b6876;margin-top:.2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #e3e8ee}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{position:relative;height:.7rem;width:12rem;background:#eceff3;border-radius:.35rem}
.bar i{position:absolute;left:0;top:0;bottom:0;background:#3b76b5;border-radius:.35rem}
.bar b{position:absolute;top:.28rem;height:.14rem;background:#12263a}
.no{color:#a3372b;font-weight:600}
@media (prefers-color-scheme:dark){body{background:#14181d;color:#dde4ec}th,td{border-color:#2b333d}
.bar{background:#2b333d}.bar b{background:#dde4ec}p.sub{color:#93a1b0}}
"""


@dataclass(frozen=True, slots=True)
class Heading:
    """The subject of an evaluation; ``left_out`` describes what the figures do not count."""

    bench: str
    policy: str
    about: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Paired differences to another evaluation; ``remark`` states other causes than the weights."""

    policy: str
    differences: Mapping[str, Estimate]
    remark: str = ""


def with_interval(estimate: Estimate, *, signed: bool = False) -> str:
    """Return an estimate with its interval: ``0.420 (0.360 to 0.480)``."""
    form = "+.3f" if signed else ".3f"
    if math.isnan(estimate.mean):
        return "–"
    if math.isnan(estimate.low):
        return format(estimate.mean, form)
    return f"{estimate.mean:{form}} ({estimate.low:{form}} to {estimate.high:{form}})"


def verdict(estimate: Estimate, better: str = "better", worse: str = "worse") -> str:
    """Return ``better`` or ``worse`` only if the interval excludes 0."""
    if not estimate.excludes_zero:
        return "no difference shown"
    return better if estimate.mean > 0 else worse


def figures(evaluation: Evaluation) -> list[tuple[str, Estimate | None, str]]:
    """Return the main table's rows: name, estimate if any, and text."""
    rows: list[tuple[str, Estimate | None, str]] = [("pass@1", evaluation.pass_1, with_interval(evaluation.pass_1))]
    for name, by_k in (("pass", evaluation.pass_k), ("maj", evaluation.majority_k)):
        for k, estimate in by_k.items():
            skipped = f", {evaluation.skipped[k]} problems left out" if evaluation.skipped[k] else ""
            rows.append((f"{name}@{k}", estimate, with_interval(estimate) + skipped))
    if evaluation.tokens is not None:
        tokens = evaluation.tokens
        reach = "" if math.isnan(tokens.low) else f" ({tokens.low:,.0f} to {tokens.high:,.0f})"
        rows.append(("tokens", None, f"{tokens.mean:,.0f}{reach}"))
    for name, share in (
        ("cut off", evaluation.cut_share),
        ("format kept", evaluation.format_share),
        ("one language", evaluation.language_share),
    ):
        if share is not None:
            rows.append((name, None, f"{share:.1%}"))
    return rows


def counted(evaluation: Evaluation) -> str:
    """Return the counts that the figures are based on."""
    words = f"{evaluation.problems:,} problems, {evaluation.attempts:,} attempts; intervals of 95 % over problems"
    if evaluation.failed:
        words += f"; the verifier failed on {evaluation.failed:,} attempts, which do not count"
    if evaluation.unjudged:
        words += f"; {evaluation.unjudged:,} problems have no judged attempt"
    return words


@dataclass(frozen=True, slots=True)
class _Table:
    """A report's table; a page draws ``bars``, one per row."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    bars: Sequence[Estimate | None] = ()


def _tables(evaluation: Evaluation, compared: Comparison | None) -> list[_Table]:
    found = figures(evaluation)
    rows = [(name, text) for name, _, text in found]
    tables = [_Table("", ("measure", "value"), rows, [estimate for _, estimate, _ in found])]
    if compared is not None:
        title = f"Compared with {compared.policy}, paired over {compared.differences['pass@1'].count:,} problems"
        cells = [
            (name, with_interval(estimate, signed=True), verdict(estimate))
            for name, estimate in compared.differences.items()
        ]
        tables.append(_Table(title, ("measure", "difference", ""), cells))
    if evaluation.languages:
        paired = any(item.difference is not None for item in evaluation.languages)
        spoken: list[tuple[str, ...]] = [("language", "problems", "pass@1", "one language", "to English, paired")]
        for item in evaluation.languages:
            share = f"{item.one_language:.1%}" if item.one_language is not None else "–"
            difference = with_interval(item.difference, signed=True) if item.difference is not None else ""
            spoken.append((item.lang, f"{item.pass_1.count:,}", with_interval(item.pass_1), share, difference))
        head, *rest = spoken if paired else [row[:-1] for row in spoken]
        tables.append(_Table("Languages", head, rest, [item.pass_1 for item in evaluation.languages]))
    return tables


def report_lines(heading: Heading, evaluation: Evaluation, compared: Comparison | None = None) -> list[str]:
    """Return the evaluation as lines for a terminal."""
    lines = [f"{heading.bench}: {heading.policy}", counted(evaluation), *heading.left_out]
    lines += [compared.remark] if compared is not None and compared.remark else []
    for table in _tables(evaluation, compared):
        lines += ["", *([table.title] if table.title else [])]
        rows = [table.head, *table.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        padded = (zip(row, widths, strict=True) for row in rows)
        lines += ["  " + "  ".join(cell.ljust(width) for cell, width in row).rstrip() for row in padded]
    return lines


def report_page(
    heading: Heading,
    evaluation: Evaluation,
    problems: pl.DataFrame,
    compared: Comparison | None = None,
) -> str:
    """Return the evaluation as an HTML page.

    Args:
        problems: ``problem``, ``statement``, ``correct``, ``attempts`` and ``tokens``, in the order to show.
    """
    parts = [f"<h1>{escape(heading.bench)}</h1>", f"<p class=sub>{escape(heading.policy)}</p>"]
    parts.append(f"<p>{'.<br>'.join(escape(line) for line in (counted(evaluation), *heading.left_out))}.</p>")
    if compared is not None and compared.remark:
        parts.append(f"<p class=no>{escape(compared.remark)}</p>")
    for table in _tables(evaluation, compared):
        parts += [f"<h2>{escape(table.title)}</h2>"] if table.title else []
        cells = [tuple(map(escape, row)) for row in table.rows]
        if table.bars:
            bars = [_bar(estimate) if estimate is not None else "" for estimate in table.bars]
            cells = [(row[0], bar, *row[1:]) for row, bar in zip(cells, bars, strict=True)]
        parts.append(_table((table.head[0], "", *table.head[1:]) if table.bars else table.head, cells))
    parts.append("<h2>Problems, the hardest first</h2>")
    parts.append(_problems_table(problems))
    parts.append("<h2>How it was asked</h2><ul>" + "".join(f"<li>{escape(line)}</li>" for line in heading.about))
    return _page(f"{heading.bench}: {heading.policy}", "".join(parts) + "</ul>")


def _page(title: str, body: str) -> str:
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style>\n{body}\n</html>\n"
    )


def _problems_table(problems: pl.DataFrame) -> str:
    rows = []
    for row in problems.iter_rows(named=True):
        rate = row["correct"] / row["attempts"] if row["attempts"] else math.nan
        bar = _bar(Estimate(rate, math.nan, math.nan, 1)) if row["attempts"] else ""
        tokens = f"{row['tokens']:,.0f}" if row["tokens"] is not None else "–"
        short = " ".join(row["statement"].split())[:160]
        rows.append(
            (bar, f"{row['correct']}/{row['attempts']}", tokens, escape(short), f"<code>{row['problem'][:8]}</code>")
        )
    return _table(("", "correct", "tokens", "problem", "id"), rows)


def _bar(estimate: Estimate) -> str:
    if math.isnan(estimate.mean):
        return ""
    line = ""
    if not math.isnan(estimate.low):
        line = f"<b style='left:{estimate.low:.1%};width:{estimate.high - estimate.low:.1%}'></b>"
    return f"<div class=bar><i style='width:{estimate.mean:.1%}'></i>{line}</div>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
