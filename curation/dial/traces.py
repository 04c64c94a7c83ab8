"""The correct attempts that are stored: read from attempt stores, and judged again by the run's own verifier.

Invariants: an attempt is taken for correct where this verifier says so, whoever made it and whatever was said of it
before; which attempts there are, and in which order, follows from the stores' content alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from curation.dial.cutting import Question
from curation.records import Outcome
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import Judge, JudgeTask, Response


class CorrectAttempts:
    """Correct texts of stores, those of the first store first, the shortest of a store first.

    Args:
        stores: of attempts at solving.
    """

    def __init__(self, stores: Sequence[AttemptStore], judge: Judge) -> None:
        self._stores, self._judge = stores, judge

    def of(self, questions: Mapping[str, Question]) -> dict[str, list[tuple[str, str]]]:
        """Return the correct attempts at these problems, each as who made it and its text, each text once."""
        correct: dict[str, dict[str, str]] = {}
        for store in self._stores:
            found = self._correct(store, questions)
            for name, texts in found.items():
                for text in sorted(texts, key=lambda text: (len(text), text)):
                    correct.setdefault(name, {}).setdefault(text, store.key.policy)
        return {name: [(by, text) for text, by in texts.items()] for name, texts in correct.items()}

    def _correct(self, store: AttemptStore, questions: Mapping[str, Question]) -> dict[str, list[str]]:
        rows = store.read(list(questions), ["problem", "index", "text", "finish"]).drop_nulls("text")
        responses: dict[str, list[Response]] = {}
        for name, _, text, finish in rows.sort("problem", "index").iter_rows():
            responses.setdefault(name, []).append(Response(text, None, finish))
        tasks = [
            JudgeTask(name, asked.reference, asked.lang, tuple(given), asked.letter, statement=asked.statement)
            for name, given in responses.items()
            for asked in (questions[name],)
        ]
        correct: dict[str, list[str]] = {}
        for result in self._judge.judge(tasks):
            for response, verdict in zip(responses[result.problem], result.verdicts, strict=True):
                if verdict.outcome is Outcome.CORRECT and response.text is not None:
                    correct.setdefault(result.problem, []).append(response.text)
        return correct
