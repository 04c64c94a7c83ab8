"""Between the sampler and the tables: its verdicts as rows, and the answers of attempts that are stored already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from curation.difficulty.open_problems import SampledProblem
from curation.records import VERDICT, AttemptKey
from curation.storage.attempts import REFUSAL, AttemptStore
from curation.verify.math_judge import Judge, Response


def verdict_frame(sampled: Iterable[SampledProblem], key: AttemptKey, verifier: str) -> pl.DataFrame:
    """Return the verdicts in the `VERDICT` schema, in the order of ``sampled`` and by index."""
    rows = [
        (
            result.problem,
            index,
            result.reference,
            verdict.outcome.value,
            verdict.answer,
            verdict.answer_class,
            verdict.method,
        )
        for result in sampled
        for index, verdict in sorted(result.verdicts.items())
    ]
    columns = ("problem", "index", "reference", "outcome", "answer", "answer_class", "method")
    same = {"policy": key.policy, "prompt": key.prompt, "sampling": key.sampling, "verifier": verifier}
    frame = pl.DataFrame(rows, schema={name: VERDICT[name] for name in columns}, orient="row")
    return frame.with_columns(pl.lit(value).alias(name) for name, value in same.items()).select(VERDICT.names())


def refusal_frame(sampled: Iterable[SampledProblem]) -> pl.DataFrame:
    """Return the refusals at which sampling ended, in the `REFUSAL` schema."""
    rows = [
        (result.problem, result.refused[0], result.refused[1].kind, result.refused[1].reason)
        for result in sampled
        if result.refused is not None
    ]
    return pl.DataFrame(rows, schema=REFUSAL, orient="row")


def stored_answers(
    store: AttemptStore, problems: Sequence[str], attempts: int, judge: Judge
) -> dict[str, dict[int, str | None]]:
    """Return the final answers of the stored attempts below ``attempts``, by problem and index.

    `SamplingRequest.stored_answers` takes those of one problem.
    """
    answers: dict[str, dict[int, str | None]] = {}
    rows = store.read(problems, ["problem", "index", "text", "answer", "finish"]).filter(pl.col("index") < attempts)
    for problem, index, text, answer, finish in rows.iter_rows():
        answers.setdefault(problem, {})[index] = judge.final_answer(Response(text, answer, finish))
    return answers
