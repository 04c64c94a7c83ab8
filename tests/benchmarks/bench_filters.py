"""How often each rule of the format filter is right.

    python -m tests.benchmarks.bench_filters [DATA] [--elsewhere FOLDER]

DATA holds the labelled sets (default: shared/data next to the checkout). The labels of `filter_labels.tsv` are the
project's, by a row's id: ``read`` and ``after`` (a person read the row) or ``set`` (every
such row of the set is one: no answer, a theorem to prove). A drop is right if the label is not ``keep``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import polars as pl

from curation.filters.statements.filtering import apply_rules
from curation.records import PROBLEM
from tests.benchmarks.labelled_rows import KEEP, LABELS, load_elsewhere, row_hash
from tests.places import SHARED_DATA

OPEN_SETS = ("gsm8k", "svamp", "mgsm", "imo_answerbench", "olymmath", "polymath")
CHOICE_SETS = ("aqua_rat", "tal_scq5k")
PROOF_SETS = ("imo_proofbench", "minif2f_informal")
OTHER_SETS = ("umwp", "mip_missing_premise", "odyssey_math", "hardmath_mini")


def load(folder: Path) -> pl.DataFrame:
    rows = []
    for name in (*PROOF_SETS, *CHOICE_SETS, *OPEN_SETS, *OTHER_SETS):
        for number, line in enumerate((folder / "math" / f"{name}.jsonl").read_bytes().splitlines()):
            row = json.loads(line)
            answer = None if row["answer"] is None else str(row["answer"])
            texts = {"statement": row["problem"], "answer": answer, "meta": json.dumps(row.get("meta"))}
            rows.append({key: row[key] for key in ("id", "choices", "lang")} | texts | {"source": name, "row": number})
    return pl.DataFrame(rows, schema=PROBLEM)


def labelled(problems: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that the project labelled and that are those that were read, with rule, reason and label."""
    labels = pl.read_csv(LABELS, separator="\t", schema_overrides={"weight": pl.Float64}).drop("weight")
    rows = problems.join(labels, on="id", how="inner")
    same = [row_hash(*texts) for texts in rows.select("statement", "answer").iter_rows()]
    rows = rows.filter(pl.Series(same, dtype=pl.String) == rows["hash"])
    return rows.select("id", "label", "statement", "answer", "lang").hstack(
        apply_rules(rows.select(PROBLEM.names())).select("rule", "reason", "evidence")
    )


def rule_counts(lines: pl.DataFrame) -> dict[str, tuple[int, int]]:
    is_right = (pl.col("label") != KEEP).sum()
    counted = lines.drop_nulls("rule").group_by("rule").agg(pl.len(), is_right.alias("right")).sort("rule")
    return {rule: (dropped, right) for rule, dropped, right in counted.iter_rows()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=SHARED_DATA)
    parser.add_argument("--elsewhere", type=Path, help="sets by reference (labelled_rows.py); DATA/elsewhere")
    arguments = parser.parse_args()
    problems = load(arguments.data)
    elsewhere = load_elsewhere(arguments.elsewhere or arguments.data / "elsewhere")
    print(rule_counts(labelled(pl.concat([problems, elsewhere]))))


if __name__ == "__main__":
    main()
