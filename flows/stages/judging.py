"""Open a recipe's verifier."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from curation.plugins import PluginRef
from curation.programs import language_variants
from curation.sources.procedural import scorer_name
from curation.storage.stages import read_shard
from curation.verify.math_judge import Judge, MathJudge
from curation.verify.own_judges import find_judge
from curation.verify.programs.judge import VERSION as PROGRAMS
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import TESTS_A_GROUP, CodeLang, CodeProblem
from curation.verify.programs.tables import build_problem
from flows.run.benches import BenchRun
from flows.run.run_folder import Run, code_folder
from flows.run.stage import JUDGING_TABLE, TESTS_TABLE, shard_counts
from flows.stages.tests import LANGUAGE_VARIANTS, TESTS, language_of


def open_judge(run: Run, tries: int = 0) -> Judge:
    """Return the recipe's verifier, a context manager.

    Args:
        tries: earlier failures, which raise limits for answers.
    """
    if run.recipe.flow == "curate-code":
        tests = None if isinstance(run, BenchRun) else TESTS_A_GROUP
        return ProgramJudge(VariantProblems(run), run.recipe.seed, run.recipe.workers, tests)
    settings = run.recipe.verify
    return MathJudge(run.recipe.workers, *settings.limits(tries), settings.response_format, own_judges(run))


def own_judges(run: Run) -> list[PluginRef]:
    """Return the user's judges of answers: the recipe's, then its generators' scorers.

    Raises:
        ConfigError: a judge cannot be loaded.
    """
    home = code_folder(run)
    made = [source.path for source in run.recipe.read_sources if source.is_made]
    scorers = [name for generator in made if (name := scorer_name(generator, home)) is not None]
    names = dict.fromkeys([*run.recipe.verify.judges, *scorers])
    return [find_judge(name, home) for name in names]


def verifier_version(run: Run) -> str:
    """Return the recipe's verifier name and version."""
    if run.recipe.flow == "curate-code":
        return PROGRAMS
    with open_judge(run) as judge:
        return judge.version


class VariantProblems:
    """Problems of language variants, read by shard from the tests stage."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._shards: dict[str, tuple[int, str, str]] | None = None
        self._read = lru_cache(maxsize=4)(self._tables)

    def __reduce__(self) -> tuple[type[VariantProblems], tuple[Run]]:
        """Pickle only the run; another machine reads the problems again."""
        return VariantProblems, (self._run,)

    def __call__(self, name: str) -> CodeProblem:
        """Return a language variant's problem."""
        if self._shards is None:
            self._shards = self._places()
        index, group, language = self._shards[name]
        tests, judging = self._read(index)
        settings = self._run.recipe.code
        limits = settings.time_s, settings.memory_mb, language_variants.TIME_FACTORS[language]
        return build_problem(group, tests[group], judging[group], *limits, lang=CodeLang(language))

    def _places(self) -> dict[str, tuple[int, str, str]]:
        folder = LANGUAGE_VARIANTS.folder_in(self._run)
        places: dict[str, tuple[int, str, str]] = {}
        for index in range(len(shard_counts(folder))):
            rows = read_shard(folder, "kept", index).select("id", "group", "meta").iter_rows()
            places |= {name: (index, group, language_of(meta)) for name, group, meta in rows}
        return places

    def _tables(self, index: int) -> tuple[dict[str, list[tuple[str, str]]], dict[str, dict[str, Any]]]:
        folder = TESTS.folder_in(self._run)
        tests: dict[str, list[tuple[str, str]]] = {}
        rows = read_shard(folder, TESTS_TABLE, index).select("problem", "input", "output").iter_rows()
        for name, test_input, expected in rows:
            tests.setdefault(name, []).append((test_input, expected))
        judging = {row["problem"]: row for row in read_shard(folder, JUDGING_TABLE, index).iter_rows(named=True)}
        return tests, judging
