"""How good and how fast the format filter is: precision and recall per kind, rows a second, peak memory.

    python tests/benchmarks/bench_filters.py [DATA] [--rows 1000000] [--map-rows 40000] [--labels]

DATA holds the labelled sets (default: shared/data beside the checkout). The labels are the sets' own ``kind``; those of
`filter_labels.tsv` are the project's own, by a row's id: ``read`` (a person read the row and what became of it) or
``set`` (every such row of the set is one: no answer, a theorem to prove), ``after`` (read with the verdict hidden, when
the rule was mended for the last time; trained on by nothing); rows ``written`` for the tests are beside
them. A drop is right where the label is not ``keep``; ``--labels`` prints that table alone.

The same expressions, translated to Python's, run row by row through ``datasets.map`` with two processes for comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.config import StatementSettings  # noqa: E402
from curation.filters.multiple_choice import OpenQuestion, Refusal, open_one  # noqa: E402
from curation.filters.statements import (  # noqa: E402
    RULES,
    apply_rules,
    classify,
    cleaning,
    completeness,
    external_references,
    filter_statements,
    measure,
    question_type,
    words,
)
from curation.filters.statements.precision import LEAST_ROWS  # noqa: E402
from curation.filters.statements.scoring import FEATURE_RULES  # noqa: E402
from curation.records import PROBLEM, DropReason  # noqa: E402
from tests.benchmarks.labelled_rows import (  # noqa: E402
    ELSEWHERE,
    KEEP,
    LABELS,
    load_elsewhere,
    row_hash,
    written_rows,
)

OPEN_SETS = ("gsm8k", "svamp", "mgsm", "imo_answerbench", "olymmath", "polymath")
CHOICE_SETS = ("aqua_rat", "tal_scq5k")
PROOF_SETS = ("imo_proofbench", "minif2f_informal")
OTHER_SETS = ("umwp", "mip_missing_premise", "odyssey_math", "hardmath_mini")


def load(folder: Path) -> pl.DataFrame:
    """Read the labelled sets as one frame in the `PROBLEM` schema, with ``kind``."""
    rows = []
    for name in (*PROOF_SETS, *CHOICE_SETS, *OPEN_SETS, *OTHER_SETS):
        for number, line in enumerate((folder / "math" / f"{name}.jsonl").read_bytes().splitlines()):
            row = json.loads(line)
            rows.append(
                dict.fromkeys(PROBLEM.names())
                | {
                    "id": row["id"],
                    "statement": row["problem"],
                    "answer": None if row["answer"] is None else str(row["answer"]),
                    "choices": row["choices"],
                    "lang": row["lang"],
                    "source": name,
                    "row": number,
                    "meta": json.dumps(row.get("meta")),
                    "kind": row["kind"],
                }
            )
    return pl.DataFrame(rows, schema={**PROBLEM, "kind": pl.String})


def quality(problems: pl.DataFrame) -> None:
    """Print targets per set, then precision and recall per kind, then what each rule dropped of which kind."""
    judged = apply_rules(problems.select(PROBLEM.names()))
    lines = problems.select("source", "kind", asked="answer").hstack(judged)
    kept, choices = (
        pl.col("reason").is_null(),
        pl.col("reason").is_in([DropReason.CHOICES_NEEDED, DropReason.CHOICES_UNRESOLVED]),
    )
    opened = kept & (pl.col("answer") != pl.col("asked"))
    print(
        lines.group_by("source", maintain_order=True).agg(
            rows=pl.len(),
            kept=kept.mean().round(4),
            dropped_as_proof=pl.col("reason").eq_missing(DropReason.PROOF).mean().round(4),
            choices_recognised=(opened | choices.fill_null(False)).mean().round(4),
            choices_opened=opened.mean().round(4),
        )
    )
    renamed = {
        "proof": pl.col("reason") == DropReason.PROOF,
        "mcq": choices.fill_null(False) | (pl.col("answer").ne_missing(pl.col("asked")) & kept & ~debris()),
        "unanswerable": pl.col("reason") == DropReason.MISSING_ANSWER,
        "open": kept & ~(pl.col("answer").ne_missing(pl.col("asked")) & ~debris()),
    }
    for kind, guess in renamed.items():
        right = lines.filter(guess & (pl.col("kind") == kind)).height
        print(
            f"{kind:>13}: precision {right / max(1, lines.filter(guess).height):.4f}"
            f"  recall {right / max(1, lines.filter(pl.col('kind') == kind).height):.4f}"
        )
    print(per_rule(lines))


WANTED = {DropReason.PROOF: ("proof",), DropReason.MISSING_ANSWER: ("unanswerable",)} | dict.fromkeys(
    (DropReason.CHOICES_NEEDED, DropReason.CHOICES_UNRESOLVED), ("mcq",)
)
"""Which kinds a reason is right for; the sets have no label for what the other reasons name."""


def per_rule(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the rows each rule dropped, by labelled kind; its precision, and its recall of these kinds.

    The sets label kinds, not rules: where a reason has no kind of its own there is neither precision nor recall, and
    the rows under ``open`` are those that it dropped against their label.
    """
    dropped = lines.filter(pl.col("reason").is_not_null())
    counted = dropped.group_by("rule", "reason", "kind").len().pivot(on="kind", values="len").fill_null(0)
    kinds = sorted(set(lines["kind"]))
    kind_sizes = dict(lines.group_by("kind").len().iter_rows())
    rows = []
    for row in counted.sort("rule", "reason").iter_rows(named=True):
        right_kinds = WANTED.get(row["reason"])
        right = sum(row.get(kind, 0) for kind in right_kinds or ())
        fired = sum(row.get(kind, 0) for kind in kinds)
        recall = right / sum(kind_sizes.get(kind, 0) for kind in right_kinds) if right_kinds else None
        cells = {name: row[name] for name in ("rule", "reason")} | {kind: row.get(kind, 0) for kind in kinds}
        rows.append({**cells, "fired": fired, "precision": right / fired if right_kinds else None, "recall": recall})
    return pl.DataFrame(rows).with_columns(pl.col("precision", "recall").cast(pl.Float64).round(4))


AFTER, ENOUGH_AFTER = "after", 100
"""The label's ``how`` of rows that were read blind when a rule had been mended for the last time, and how many of them
measure it alone."""
BY_SCORE = " by score"
"""Behind the name of a rule whose finding alone dropped nothing."""
_RULE = (
    pl.when(pl.col("reason").is_not_null() & ~pl.col("alone")).then(pl.col("rule") + BY_SCORE).otherwise("rule")
).alias("rule")


def labelled(problems: pl.DataFrame) -> pl.DataFrame:
    """Return rule, reason, ``fires`` (all trusted rules that find something), label and ``how`` of every row that the
    project labelled, and of those written for tests.

    Raises:
        SystemExit: a label is of a row that is not in the data.
    """
    labels = pl.read_csv(LABELS, separator="\t", schema_overrides={"weight": pl.Float64}).rename(
        {"weight": "stands_for"}
    )
    rows = problems.join(labels, on="id", how="inner")
    missing = labels.join(problems, on="id", how="anti").filter(
        pl.col("id").str.extract("^([^/]+)").is_in(ELSEWHERE).not_()
    )
    if missing.height:
        raise SystemExit(f"{missing.height} labels are of no row of the data, as {missing['id'].head(3).to_list()}")
    hashes = [row_hash(*texts) for texts in rows.select("statement", "answer").iter_rows()]
    changed = rows.filter(pl.Series(hashes) != rows["hash"])
    if changed.height:
        raise SystemExit(
            f"{changed.height} rows are not those that were labelled, as {changed['id'].head(3).to_list()}"
        )
    own = written_rows()
    return pl.concat(
        [
            judged(rows).hstack(rows.select("label", "how", "id", "stands_for")),
            judged(own).hstack(
                own.select("label", how=pl.lit("written"), id="statement", stands_for=pl.lit(None, pl.Float64))
            ),
        ]
    )


def judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rule and reason of each row; every rule that is none of the classifier's drops alone, whatever its figure
    is now, since this is what it is measured by.
    """
    settings = StatementSettings(drop_from=1e-9)
    absent = [pl.lit(None, kind).alias(name) for name, kind in PROBLEM.items() if name not in rows.columns]
    problems = rows.with_columns(absent).select(PROBLEM.names())
    fires = measure(problems, settings).verdicts.group_by("at").agg(fires=pl.col("rule").unique())
    lines = classify(problems, settings).with_row_index("at").join(fires, on="at", how="left", maintain_order="left")
    return lines.with_columns(alone=pl.col("fires").is_not_null()).select(_RULE, "reason", "fires")


def interval(share: pl.Expr, n: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the ends of Wilson's interval (95 %) of a share of ``n``."""
    z = 1.96
    middle, half = share + z**2 / (2 * n), z * (share * (1 - share) / n + z**2 / (4 * n**2)).sqrt()
    return ((middle - half) / (1 + z**2 / n)).round(3), ((middle + half) / (1 + z**2 / n)).round(3)


def label_table(lines: pl.DataFrame) -> pl.DataFrame:
    """Return by rule and kind of label: rows dropped, those dropped rightly, the precision and its interval (95 %)."""
    fired = lines.filter(pl.col("reason").is_not_null())
    counted = fired.group_by("rule", "how").agg(fired=pl.len(), right=(pl.col("label") != KEEP).sum())
    low, high = interval(pl.col("right") / pl.col("fired"), pl.col("fired"))
    share = pl.col("right") / pl.col("fired")
    return counted.with_columns(precision=share.round(4), low=low, high=high).sort("how", "rule")


def rule_counts(lines: pl.DataFrame) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return what `precision.py` holds: by table and rule, rows and those dropped rightly.

    ``MEASURED`` is of rows that others wrote and that the rule drops first; with fewer than `LEAST_ROWS` of them,
    ``BEHIND`` is of all those in which it finds something, and with fewer of these, too, ``WRITTEN`` is of written rows
    and those, whose number stands last. A rule that drops enough of the rows ``after`` (read blind when it had been
    mended for the last time) is measured on these alone.
    """
    is_right = (pl.col("label") != KEEP).cast(pl.Int64)
    first = lines.filter(pl.col("fires").is_not_null()).with_columns(at=pl.col("rule"))
    every = lines.explode("fires").filter(pl.col("fires").is_not_null()).with_columns(at=pl.col("fires"))
    tables: dict[str, dict[str, tuple[int, ...]]] = {"MEASURED": {}, "BEHIND": {}, "WRITTEN": {}}
    for rule in sorted({rule.name for rule in RULES} - set(FEATURE_RULES) | {"choices"}):
        of_first, of_every, of_own = (
            rows.filter(pl.col("at") == rule).select(is_right).to_series().to_list()
            for rows in (
                first.filter(pl.col("how") != "written"),
                every.filter(pl.col("how") != "written"),
                every.filter(pl.col("how") == "written"),
            )
        )
        of_last = first.filter((pl.col("how") == AFTER) & (pl.col("at") == rule)).select(is_right).to_series().to_list()
        of_first = of_last if len(of_last) >= ENOUGH_AFTER else of_first
        if len(of_first) >= LEAST_ROWS:
            tables["MEASURED"][rule] = len(of_first), sum(of_first)
        elif len(of_every) >= LEAST_ROWS:
            tables["BEHIND"][rule] = len(of_every), sum(of_every)
        elif of_every or of_own:
            tables["WRITTEN"][rule] = len(of_own) + len(of_every), sum(of_own) + sum(of_every), len(of_every)
    return tables


def recall_table(lines: pl.DataFrame) -> pl.DataFrame:
    """Return for each label: its rows, the share that was dropped, and the share dropped for that very reason.

    ``estimated`` is the share dropped of all rows of the sets with that label, by the rows that were drawn by chance,
    each as often as it stands for another; its interval takes the rows for independent draws of equal weight.
    """
    dropped, drawn = pl.col("reason").is_not_null(), pl.col("stands_for").is_not_null()
    weight = pl.col("stands_for").filter(drawn)
    table = lines.group_by("label", "how").agg(
        rows=pl.len(),
        dropped=dropped.mean().round(4),
        for_this_reason=(pl.col("reason") == pl.col("label")).fill_null(False).mean().round(4),
        drawn=drawn.sum(),
        estimated=((dropped.filter(drawn) * weight).sum() / weight.sum()).round(4),
        effective=weight.sum() ** 2 / (weight**2).sum(),
    )
    low, high = interval(pl.col("estimated"), pl.col("effective"))
    return table.with_columns(low=low, high=high).drop("effective").sort("how", "label")


def debris() -> pl.Expr:
    """Return the rows of which only debris was cleaned: the set of raw LaTeX is labelled open, not multiple choice."""
    return pl.col("source") == "odyssey_math"


def speed(problems: pl.DataFrame, count: int) -> tuple[float, float]:
    """Print and return rows per second, and per CPU second, of the filter on ``count`` rows: the sets, repeated."""
    rows = problems.select(PROBLEM.names())
    many = pl.concat([rows] * (count // rows.height + 1)).head(count).rechunk()
    start, busy = time.perf_counter(), cpu()
    out = filter_statements(many)
    took, busy = time.perf_counter() - start, cpu() - busy
    assert out.kept.height + out.dropped.height == count
    print(f"filter_statements:        {rates_text(count, took, busy)}; peak memory {peak():.2f} GB")
    return count / took, count / busy


def rates_text(count: int, took: float, busy: float) -> str:
    return f"{count:,} rows in {took:.1f} s = {count / took:,.0f} rows/s ({count / busy:,.0f} per second of CPU)"


def cpu() -> float:
    """Return CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def peak() -> float:
    """Return peak resident memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def pythonic(pattern: str) -> re.Pattern[str]:
    """Return a Rust regular expression as one of Python's."""
    text = pattern.replace("(?-u:\\b)", "\\b").replace("\\z", "\\Z").replace("(?-i:", "(?:").replace("(?i)", "")
    text = (
        text.replace("\\p{Han}", "[\\u4e00-\\u9fff]")
        .replace("\\p{Latin}", "A-Za-zÀ-ÿ")
        .replace("\\p{Cyrillic}", "А-яё")
    )
    text = text.replace("(?i:", "(?:").replace("\\x{FFFD}", "\ufffd")
    return re.compile(text, re.IGNORECASE)


def row_rules() -> Iterator[tuple[str, list[str], re.Pattern[str] | None, re.Pattern[str]]]:
    """Yield column, needles, harmless and fires: the rules as a filter for single rows would hold them."""
    statement = [
        (words.PROOF_NEEDLES, words.PROOF_HARMLESS, words.PROOF),
        (external_references.FIGURE_NEEDLES, external_references.FIGURE_HARMLESS, external_references.FIGURE),
        (external_references.ELSEWHERE_NEEDLES, None, external_references.ELSEWHERE),
        (completeness.NOT_A_PROBLEM_NEEDLES, None, completeness.NOT_A_PROBLEM),
        (question_type.MULTI_PART_NEEDLES, None, question_type.MULTI_PART),
        (["also", "?", "？"], None, question_type.ALSO_ASKED),
        (question_type.TRUE_FALSE_NEEDLES, None, question_type.TRUE_FALSE),
        (completeness.SERIES_NEEDLES, completeness.SERIES_HARMLESS, completeness.SERIES_GUESS),
        (external_references.GIVEN_NEEDLES, None, external_references.GIVEN),
        ([""], None, completeness.CUT_OFF),
    ]
    for needles, harmless, fires in statement:
        yield "statement", needles, pythonic(harmless) if harmless else None, pythonic(fires)
    for fires in (
        question_type.NO_ANSWER,
        question_type.MARKED_ANSWERS,
        question_type.SEVERAL,
        question_type.YES_NO_ANSWER,
        question_type.HEDGED,
        question_type.WORKED,
        question_type.SENTENCE,
    ):
        yield "answer", [""], None, pythonic(fires)


def row_filter() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the same work for one row: clean, open the choices, then the rules with their needles in front."""
    steps = [(pythonic(pattern), replacement.replace("\\", "\\\\")) for pattern, replacement in cleaning.STEPS]
    rules = list(row_rules())

    def judged(row: dict[str, Any]) -> dict[str, Any]:
        texts = {"statement": row["statement"] or "", "answer": row["answer"] or ""}
        for name, text in texts.items():
            if any(needle in text for needle in cleaning.NEEDLES):
                for pattern, replacement in steps:
                    texts[name] = pattern.sub(replacement, texts[name])
        verdict = open_one(texts["statement"], texts["answer"], row["choices"], row["lang"]) if row["answer"] else None
        if isinstance(verdict, Refusal):
            return {"fired": 0}
        if isinstance(verdict, OpenQuestion):
            texts = {"statement": verdict.statement, "answer": verdict.answer}
        lower = {name: text.lower() for name, text in texts.items()}
        for number, (column, needles, harmless, fires) in enumerate(rules, 1):
            if any(needle in lower[column] for needle in needles):
                text = harmless.sub(" ", texts[column]) if harmless else texts[column]
                if fires.search(text):
                    return {"fired": number}
        return {"fired": -1}

    return judged


def speed_of_map(problems: pl.DataFrame, count: int) -> tuple[float, float]:
    """Print and return the same two rates of ``datasets.map(num_proc=2)`` with the same rules."""
    import datasets

    rows = problems.select("statement", "answer", "choices", "lang")
    many = pl.concat([rows] * (count // rows.height + 1)).head(count)
    data = datasets.Dataset.from_list(many.to_dicts())
    datasets.disable_caching()
    datasets.disable_progress_bars()
    start, busy = time.perf_counter(), cpu()
    data.map(row_filter(), num_proc=2)
    took, busy = time.perf_counter() - start, cpu() - busy
    print(f"datasets.map(num_proc=2): {rates_text(count, took, busy)}")
    return count / took, count / busy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--map-rows", type=int, default=40_000, help="0 leaves the comparison out")
    parser.add_argument("--elsewhere", type=Path, help="sets by reference (labelled_rows.py); DATA/elsewhere")
    parser.add_argument("--labels", action="store_true", help="only what the project's own labels say")
    arguments = parser.parse_args()
    problems = load(arguments.data)
    with pl.Config(tbl_rows=90, tbl_cols=12, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        lines = labelled(pl.concat([problems, load_elsewhere(arguments.elsewhere or arguments.data / "elsewhere")]))
        print(label_table(lines), recall_table(lines), sep="\n")
        for table, counts in rule_counts(lines).items():
            print(table, "=", counts)
        if arguments.labels:
            return
        quality(problems)
    ours = speed(problems.drop("kind"), arguments.rows)
    if arguments.map_rows:
        theirs = speed_of_map(problems, arguments.map_rows)
        print(f"ratio: {ours[0] / theirs[0]:.1f} by the clock, {ours[1] / theirs[1]:.1f} by CPU time")


if __name__ == "__main__":
    main()
