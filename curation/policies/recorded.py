"""A policy that answers from a file of attempts.

Invariant: an attempt without text and answer counts as no answer.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from curation.config import RecordedModel
from curation.prompts import Prompt
from curation.prompts.solving import RECORDED
from curation.records import AttemptKey, Completion, PolicyError, PromptRequest, RequestRefused, problem_id
from curation.sources.files import read_rows
from curation.sources.rows import Row, parse_options, require_path, value_at
from curation.storage.stages import file_digest
from curation.thinking import ThinkingTags, response_text

_FIRST_ROWS = 100

_TABLE = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
CREATE TABLE attempts (problem TEXT, text TEXT, answer TEXT, label INTEGER, refused TEXT, model TEXT);
"""
_INSERT = "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)"
_OF_PROBLEM = "SELECT text, answer, label, refused FROM attempts WHERE problem = ? ORDER BY rowid"
_MODELS_OF_PROBLEM = "SELECT model FROM attempts WHERE problem = ? ORDER BY rowid"
_COUNT_OF_PROBLEM = "SELECT count(*) FROM attempts WHERE problem = ?"

_Stored = tuple[str | None, str | None, int | None, str | None]
"""An attempt's text, answer and label, and why its text is unreadable."""


class Recorded:
    """A file of attempts as a `Policy`.

    Raises:
        SourceError: the file is unreadable, or lacks a column.
        PolicyError: it has no attempts, or a wrong type.
    """

    instant = True
    in_flight = 1

    def __init__(self, settings: RecordedModel, folder: Path, prompt: Prompt | None = None) -> None:  # noqa: ARG002 - all policies open alike
        self._settings, self._tags = settings, ThinkingTags.of(settings.thinking)
        path = folder / Path(settings.path).expanduser()
        self.path = path
        content = f"{file_digest(path) if path.is_file() else ''}|{settings.digest()}"
        self.key = AttemptKey(
            policy=settings.name,
            prompt=RECORDED,
            sampling=hashlib.blake2b(content.encode(), digest_size=6).hexdigest(),
        )
        self._rows: sqlite3.Connection | None = None
        self._count = 0
        self._last_problem: tuple[str, list[_Stored]] | None = None  # asked for, and its attempts

    def check(self) -> None:
        """Refuse a missing file or column."""
        self._check(list(itertools.islice(read_rows(self.path), _FIRST_ROWS)))

    @property
    def attempts(self) -> int:
        """Return the file's number of attempts."""
        self._loaded()
        return self._count

    def attempts_at(self, problems: Iterable[str]) -> int:
        """Return how many attempts these problems have."""
        rows = self._loaded()
        return sum(int(rows.execute(_COUNT_OF_PROBLEM, (problem,)).fetchone()[0]) for problem in problems)

    def models_at(self, problem: str) -> list[str | None]:
        """Return the models of a problem's attempts."""
        if self._settings.columns.model is None:
            return []
        return [model for (model,) in self._loaded().execute(_MODELS_OF_PROBLEM, (problem,))]

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the store notes."""
        return {"kind": "recorded", "file": self.path.name}

    def asking(self, _prompt: Prompt | None) -> Self:
        """Return this policy; prompts do not matter."""
        return self

    async def __aenter__(self) -> Self:
        self._loaded()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._last_problem = None

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return a recorded attempt, if any.

        Raises:
            RequestRefused: its text cannot be read.
        """
        rows = self._loaded()
        if self._last_problem is None or self._last_problem[0] != problem.id:
            self._last_problem = problem.id, rows.execute(_OF_PROBLEM, (problem.id,)).fetchall()
        attempts = self._last_problem[1]
        if not 0 <= index < len(attempts):
            return None
        text, answer, label, refused = attempts[index]
        if refused is not None:
            raise RequestRefused("unusable", refused)
        return Completion(text, None, None, answer, None if label is None else bool(label))

    def _loaded(self) -> sqlite3.Connection:
        if self._rows is None:
            rows = sqlite3.connect("", check_same_thread=False)
            rows.executescript(_TABLE)
            self._count = rows.executemany(_INSERT, self._attempts()).rowcount
            if not self._count:
                raise PolicyError(f"{self.path}: holds no attempts.")
            rows.execute("CREATE INDEX by_problem ON attempts (problem)")
            self._rows = rows
        return self._rows

    def _attempts(self) -> Iterator[tuple[str, str | None, str | None, bool | None, str | None, str | None]]:
        columns = self._settings.columns
        first: list[Row] = []
        for number, row in enumerate(read_rows(self.path)):
            where = f"{self.path}, row {number}"
            if len(first) < _FIRST_ROWS:
                first.append(row)
            statement = value_at(row, columns.problem)
            if not isinstance(statement, str):
                self._check(first)
                raise PolicyError(f"{where}: `{columns.problem}` is not text: {statement!r:.80}.")
            options = parse_options(_value(row, columns.choices), where)
            problem = problem_id(statement, options, self._settings.domain)
            for attempt in self._attempt_list(row, number):
                answer, label = self._answer(attempt, where), self._label(attempt, where)
                model = _value(attempt, columns.model) or _value(row, columns.model)
                text: str | None = None
                refused: str | None = None
                try:
                    text = self._text(attempt, where)
                except RequestRefused as why:
                    answer, refused = None, why.reason
                yield problem, text, answer, label, refused, None if model is None else str(model)
        self._check(first)

    def _text(self, attempt: Row, where: str) -> str | None:
        """Return the response with `THINK` tags."""
        path = self._settings.columns.text
        value = _value(attempt, path)
        if isinstance(value, int | float):
            value = str(value)
        return None if value is None else response_text(value, self._tags, f"{where}, `{path}`")

    def _answer(self, attempt: Row, where: str) -> str | None:
        path = self._settings.columns.answer
        value = _value(attempt, path)
        if value is None or isinstance(value, str | int | float):
            return None if value is None else str(value)
        raise PolicyError(f"{where}: `{path}` should be text, but is {value!r:.80}.")

    def _label(self, attempt: Row, where: str) -> bool | None:
        path = self._settings.columns.label
        value = _value(attempt, path)
        if value is None or (isinstance(value, int | float) and value in (0, 1)):
            return None if value is None else bool(value)
        raise PolicyError(f"{where}: `{path}` should be true or false, but is {value!r:.80}.")

    def _attempt_list(self, row: Row, number: int) -> Sequence[Row]:
        path = self._settings.columns.attempts
        attempts = [row] if path is None else value_at(row, path)
        if attempts is None:
            return []
        if not isinstance(attempts, list) or not all(isinstance(attempt, Mapping) for attempt in attempts):
            raise PolicyError(f"{self.path}, row {number}: `{path}` is not a list of objects: {attempts!r:.80}.")
        return attempts

    def _check(self, rows: Sequence[Row]) -> None:
        columns = self._settings.columns
        where = f"recorded attempts {self.path}"
        require_path(rows, columns.problem, where)
        attempts: Sequence[Row] = rows
        if columns.attempts is not None:
            require_path(rows, columns.attempts, where)
            attempts = [attempt for number, row in enumerate(rows) for attempt in self._attempt_list(row, number)]
            where += f", inside `{columns.attempts}`"
        if columns.choices is not None:
            require_path(rows, columns.choices, where)
        for path in (columns.text, columns.answer, columns.label):
            if path is not None:
                require_path(attempts, path, where)


def _value(row: Row, path: str | None) -> Any:
    return None if path is None else value_at(row, path)
