"""Functions for notebooks and scripts; names in `curation.__all__` are stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from curation.publish.export_formats import ExportResult
    from curation.records import Completion, Policy, PromptRequest
    from curation.verify.math_judge import Verdict
    from curation.verify.programs.problem import ProgramResult

POLICIES = {"endpoint": "curation.policies.endpoint:Endpoint", "vllm": "curation.policies.vllm:Vllm"}
"""Module and class by a model's kind."""


def read_set(folder: str | Path) -> pl.DataFrame:
    """Return a set's or run's problems, with the columns of `CURATED`.

    Raises:
        SourceError: there is no set.
    """
    import polars as pl

    from curation.records import SourceError

    for base in (Path(folder), Path(folder) / "curated"):
        if files := sorted(base.glob("data/*.parquet")):
            return pl.concat([pl.read_parquet(file, glob=False) for file in files])
    raise SourceError(f"{folder} holds no curated set: there is no data/*.parquet in it or in its folder `curated`.")


def judge_answers(
    reference: str,
    responses: Sequence[str],
    *,
    statement: str | None = None,
    lang: str = "en",
    response_format: str = "any",
    workers: int = 1,
    judges: Sequence[str] = (),
) -> list[Verdict]:
    r"""Judge responses to a math problem as a run judges attempts.

    Example: ``judge_answers("1/2", [r"So it is \boxed{0.5}."])[0].outcome`` is ``correct``.

    Args:
        statement: may ask for a unit or form.
        response_format: as `verify.response_format`.
        judges: the user's, as `path/to/chem.py:FORMULA`.

    Raises:
        ConfigError: a judge cannot be loaded.
    """
    from curation.verify.math_judge import JudgeTask, MathJudge, Response
    from curation.verify.own_judges import judge_at

    task = JudgeTask("", reference, lang, tuple(Response(text, None) for text in responses), statement=statement)
    own = [judge_at(path) for path in judges]
    with MathJudge(workers, response_format=response_format, judges=own) as judge:
        return list(judge.submit(task).result())


def judge_program(
    tests: Sequence[tuple[str, str]],
    code: str,
    *,
    language: str = "python",
    cpu_s: float = 4.0,
    memory_mb: int = 300,
    every: bool = False,
) -> ProgramResult:
    """Judge a program by tests of (input, output), in the sandbox.

    Example: ``judge_program([("1 2", "3")], "print(sum(map(int, input().split())))").verdict`` is ``AC``.

    Args:
        language: `python` or `cpp`.
        cpu_s, memory_mb: limits per test.
        every: continue after a failure.

    Raises:
        VerifierError: nothing isolates programs here.
    """
    from curation.verify.programs.judge import judge_programs
    from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, Submission
    from curation.verify.programs.tools import Runner

    cases = tuple(CodeTest(text.encode(), expected.encode()) for text, expected in tests)
    problem = CodeProblem("program", cases, cpu_s, memory_mb)
    with Runner(1) as runner:
        (result,) = judge_programs(runner, [(problem, Submission(CodeLang(language), code))], every=every)
    return result


def pass_rate(
    statement: str,
    reference: str,
    model: Mapping[str, Any],
    *,
    attempts: int = 16,
    lang: str = "en",
    response_format: str = "any",
) -> tuple[float, list[Verdict]]:
    """Ask a model a math problem; return correct / judged, and all verdicts.

    Verifier failures do not count; NaN if nothing was judged.

    Args:
        model: as `[models.NAME]`, of kind `endpoint` or `vllm`.

    Raises:
        ConfigError: the table is invalid.
        PolicyError: the model cannot be asked.
    """
    import asyncio

    from curation.records import Domain, Outcome, PromptRequest

    request = PromptRequest("problem", statement, Domain.MATH, lang)
    texts = asyncio.run(_ask(_open_policy(model), request, attempts))
    verdicts = judge_answers(reference, texts, statement=statement, lang=lang, response_format=response_format)
    judged = [verdict for verdict in verdicts if verdict.outcome not in (Outcome.TIMEOUT, Outcome.BROKEN)]
    correct = sum(verdict.outcome is Outcome.CORRECT for verdict in judged)
    return (correct / len(judged) if judged else float("nan")), verdicts


def export(folder: str | Path, form: str, out: str | Path) -> ExportResult:
    """Write a curated set in a trainer's format.

    Raises:
        SourceError: format or set do not exist, or do not fit.
    """
    from curation.publish.export_formats import export_set

    base = Path(folder)
    return export_set(base / "curated" if (base / "curated").is_dir() else base, form, Path(out))


def _open_policy(model: Mapping[str, Any]) -> Policy:
    from importlib import import_module

    from curation.config import ModelFile
    from curation.config.loading import parse_settings
    from curation.records import ConfigError

    settings = parse_settings(ModelFile, {"models": {"model": model}}, "pass_rate").models["model"]
    if settings.kind not in POLICIES:
        raise ConfigError(f"model: kind = {settings.kind!r}: the kinds that can be asked are {', '.join(POLICIES)}.")
    module, _, name = POLICIES[settings.kind].partition(":")
    policy: Policy = getattr(import_module(module), name)(settings, Path(), None)
    return policy


async def _ask(policy: Policy, request: PromptRequest, attempts: int) -> list[str]:
    import asyncio

    async with policy:
        answers: list[Completion | None] = await asyncio.gather(
            *(policy.answer(request, index) for index in range(attempts))
        )
    return [answer.text or "" for answer in answers if answer is not None]
