"""Loads a user's judges of answers: `[verify] judges = ["chem.py:FORMULA"]`.

The first that claims a reference decides. Invariants: a judge's exception is BROKEN, never wrong; its file's digest is
in the verifier's version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from reprlib import repr as brief
from typing import Protocol, runtime_checkable

from curation.plugins import PluginRef, find_plugin, load_plugin
from curation.records import SourceError
from curation.verify import answers
from curation.verify.generator_scores import TaskScorer, is_scorer, scored, scored_by_task


@runtime_checkable
class AnswerJudge(Protocol):
    """Judges one kind of answers; both methods must depend only on their arguments.

    Example, in `chem.py` next to the recipe::

        import re
        from collections import Counter

        class Formula:
            def claims(self, reference, statement):
                return re.fullmatch(r"([A-Z][a-z]?[0-9]*){2,}", reference) is not None

            def judge(self, answer, reference, statement):
                return atoms(answer) == atoms(reference)

        def atoms(formula):
            pairs = re.findall(r"([A-Z][a-z]?)([0-9]*)", formula.replace("_", ""))
            return Counter(atom for atom, number in pairs for _ in range(int(number or 1)))

        FORMULA = Formula()
    """

    def claims(self, reference: str, statement: str | None) -> bool:
        """Return whether this judge decides the problem."""
        ...

    def judge(self, answer: str, reference: str, statement: str | None) -> bool | None:
        """Return whether the answer is right; None if doubtful."""
        ...


def find_judge(name: str, folder: Path) -> PluginRef:
    """Return the judge that a recipe names.

    Raises:
        ConfigError: it cannot be loaded, or lacks a method.
    """
    plugin = load_plugin(name, folder)
    if is_scorer(plugin.value):
        return PluginRef(name, str(folder.resolve()), plugin.digest)
    needed = "an object with `claims` and `judge`, or a function score(row, answer)"
    return find_plugin(name, folder, "verify.judges", AnswerJudge, needed)


def judge_at(path: str) -> PluginRef:
    """Return the judge `path/to/chem.py:FORMULA`.

    Raises:
        ConfigError: as `find_judge`.
    """
    file, _, attribute = path.rpartition(":")
    if not file.endswith(".py"):
        return find_judge(path, Path())
    return find_judge(f"{Path(file).name}:{attribute}", Path(file).parent)


NEEDED = "judges.json"
"""File in a curated set's folder with the labels of the judges that measured it."""


def needed_judges(folder: Path) -> tuple[str, ...]:
    """Return the labels of a published set's judges.

    Raises:
        SourceError: the file is damaged.
    """
    path = folder / NEEDED
    if not path.is_file():
        return ()
    try:
        labels = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ValueError(f"it contains {brief(labels)}")
    except ValueError as error:
        raise SourceError(f"{path} does not name the set's judges ({error}); publish the set again.") from error
    return tuple(labels)


def chosen_judges(labels: Sequence[str], judges: Iterable[PluginRef], problem: str) -> tuple[PluginRef, ...]:
    """Return the judges that measured a problem.

    Raises:
        SourceError: one is missing, or its file has changed.
    """
    known = {judge.label: judge for judge in judges}
    missing = [label for label in labels if label not in known]
    if missing:
        name, _, digest = missing[0].partition("@")
        available = f"; available: {', '.join(known)}" if known else ""
        raise SourceError(
            f"problem {problem} was measured with the judge {name} (file digest {digest}{available}), which is "
            f"missing; name its file in `judges`, or in {VARIABLE}=path/to/{name}."
        )
    return tuple(known[label] for label in labels)


VARIABLE = "GOLDILOCKS_JUDGES"
"""Environment variable with judges for trainers without settings: comma-separated `path/to/chem.py:FORMULA`."""


def claims(judge: PluginRef, reference: str, statement: str | None, *, lang: str = "en") -> bool | str:
    """Return whether a judge claims a reference, or its failure."""
    plugin = judge.load()
    if is_scorer(plugin.value):
        if answers.check_reference(reference, lang=lang) is None:
            return False
        score = scored(plugin, statement, reference, reference)
        return score if isinstance(score, str) else bool(score)
    try:
        return bool(plugin.value.claims(reference, statement))
    except Exception as error:  # noqa: BLE001 - the user's code
        return f"{plugin.failure(error)} (claiming {reference!r})"


def named_scorer(name: str, judges: Iterable[PluginRef]) -> PluginRef | TaskScorer | str:
    """Return a row's scorer (`generator_scores.scorer_of`), or why there is none."""
    if name.startswith("{"):
        try:
            return TaskScorer(**json.loads(name))
        except (TypeError, ValueError):  # a foreign set
            return f"the row's scorer {name[:80]} names no task"
    plugin = next((judge for judge in judges if judge.name.rpartition("/")[2] == name), None)
    return plugin or f"the row's scorer {name} is missing; name its file in `judges`"


def verdict(judge: PluginRef | TaskScorer, answer: str, reference: str, statement: str | None) -> bool | str | None:
    """Return whether a judge accepts the answer, None in doubt, or its failure."""
    if isinstance(judge, TaskScorer):
        return scored_by_task(judge, answer)
    plugin = judge.load()
    if is_scorer(plugin.value):
        return scored(plugin, statement, reference, answer)
    try:
        accepted = plugin.value.judge(answer, reference, statement)
    except Exception as error:  # noqa: BLE001 - the user's code
        return f"{plugin.failure(error)} (judging {answer!r} by {reference!r})"
    return None if accepted is None else bool(accepted)
