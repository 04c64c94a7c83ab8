"""What a model's votes on doubtful rows are worth, beside the classifier, on rows that somebody has read.

    python -m tests.benchmarks.bench_doubtful FOLDER [DATA] [--elsewhere FOLDER]

Rows that the question `doubtful_rows` would select, of the labelled rows that no trusted rule drops: those in which a
rule found something, and those whose score reaches `ASK_FROM` (scored by weights trained without their family of sets,
`tests.statement_classifier`). Each distinct prompt is written to FOLDER/prompts/HASH.txt, as the policy would be
sent it. Who answers writes FOLDER/answers/HASH.txt, further votes HASH.2.txt and so on; they are read through the
recorded policy and counted as the stage counts votes, but that one vote is enough. What is not answered is left out,
and said.

Printed: rows dropped, rightly, by the classifier's thresholds and by the votes, and how many usable rows are lost.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

from curation.config import StatementSettings
from curation.filters.statements.scoring import HITS
from curation.questions.doubtful_rows import ASK_FROM, DOUBTFUL_ROWS, usability_request
from tests.benchmarks.bench_filters import ROOT
from tests.benchmarks.prompted_answers import answers_to, write_prompt
from tests.statement_classifier.__main__ import BARE, labelled_rows, left_out


def doubtful(data: Path, elsewhere: Path) -> pl.DataFrame:
    """Return the rows that are in doubt: texts, score, whether a rule found something (``hit``), ``unusable``."""
    rows = labelled_rows(data, elsewhere)
    hit = np.asarray(rows.named[:, -len(HITS) :].any(axis=1))
    frame = rows.texts.with_columns(
        score=pl.Series(left_out(rows)), hit=pl.Series(hit), unusable=pl.Series(rows.unusable).cast(pl.Boolean)
    )
    real = frame.filter(pl.Series(~np.isin(rows.family, ("written", BARE))))
    asked = real.filter(pl.col("hit") | (pl.col("score") >= ASK_FROM))
    return asked.filter(pl.col("statement").is_not_null() & pl.col("answer").is_not_null()).with_row_index("at")


def with_votes(rows: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Return the rows that somebody answered, with whether each rule of decision drops it; write all prompts down."""
    requests = [usability_request(*row) for row in rows.select("statement", "answer", "lang").iter_rows()]
    for request in requests:
        write_prompt(folder / "prompts", DOUBTFUL_ROWS.prompt, request)
    answered = answers_to(requests, DOUBTFUL_ROWS.prompt, folder / "answers", folder)
    texts = [(name, text) for name, some in answered.items() for text in some]
    attempts = pl.DataFrame(texts, {"problem": pl.String, "text": pl.String}, orient="row")
    tallies = DOUBTFUL_ROWS.tally(pl.Series([request.id for request in requests], dtype=pl.String), attempts)
    decided = DOUBTFUL_ROWS.decide(tallies, DOUBTFUL_ROWS.threshold, 1)
    limits = StatementSettings()
    threshold = pl.when("hit").then(limits.suspected_from).otherwise(limits.unusable_from)
    return (
        rows.hstack(decided.select(votes=pl.col("decision") != "usable"))
        .with_columns(classifier=pl.col("score") >= threshold)
        .filter(pl.col("votes").is_not_null())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--elsewhere", type=Path, default=Path("nowhere"), help="the sets of `labelled_rows.ELSEWHERE`")
    arguments = parser.parse_args()
    rows = doubtful(arguments.data, arguments.elsewhere)
    judged = with_votes(rows, arguments.folder)
    print(f"{rows.height:,} doubtful rows, {judged.height:,} answered")
    for name, chosen in (("all", pl.lit(True)), ("a rule found something", "hit"), ("no rule did", ~pl.col("hit"))):
        part = judged.filter(chosen)
        bad = int(part["unusable"].sum())
        for who in ("classifier", "votes"):
            drop = part.filter(who)
            right = int(drop["unusable"].sum())
            print(f"  {name}, {who}: {drop.height} dropped, {right} of {bad} unusable ones; {drop.height - right} of "
                  f"{part.height - bad} usable ones lost")  # fmt: skip


if __name__ == "__main__":
    main()
