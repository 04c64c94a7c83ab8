"""Verdicts on stored attempts: the statement, the reference and the option's letter reach the judge."""

from __future__ import annotations

import polars as pl

from curation.records import ATTEMPT, VERDICT
from curation.verify.math_judge import MathJudge
from flows.stages import attempts as stage

PROBLEMS = pl.DataFrame(
    {
        "id": ["rope", "sum"],
        "answer": ["31", "12"],
        "lang": ["en", "en"],
        "raw_answer": [None, "B"],
        "meta": pl.Series([None, None], dtype=pl.String),
        "statement": ["How long is the rope in metres?", "Find $m+n$."],
    }
)
ANSWERS = {"rope": ("3100 cm", "31\\text{ km}", "31"), "sum": ("m+n=12", "B", "m=12")}


def attempts() -> pl.DataFrame:
    rows = [
        dict.fromkeys(ATTEMPT)
        | {"problem": name, "policy": "p@1", "prompt": "p", "sampling": "s", "index": at, "text": text}
        for name, finals in ANSWERS.items()
        for at, text in enumerate(f"So it is \\boxed{{{final}}}" for final in finals)
    ]
    return pl.DataFrame(rows, schema=ATTEMPT)


def test_attempts_are_judged_by_what_the_statement_asks_for() -> None:
    with MathJudge(workers=1) as judge:
        judged = stage.judge_rows(judge, PROBLEMS, attempts())
    assert judged.schema == VERDICT
    assert judged["outcome"].to_list() == ["correct", "wrong", "correct", "correct", "correct", "wrong"]
