"""A policy that answers from a file of attempts.

Invariant: an attempt without text and answer counts as no answer.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

    def check(self) -> None:
        """Refuse a missing file or column."""
        columns, where = self._settings.columns, f"recorded attempts {self.path}"
        rows = attempts = list(itertools.islice(read_rows(self.path), _FIRST_ROWS))
        for path in (columns.problem, columns.choices, columns.attempts):
            if path is not None:
                require_path(rows, path, where)
        if columns.attempts is not None:
            attempts = [attempt for number, row in enumerate(rows) for attempt in self._attempt_list(row, number)]
            where += f", inside `{columns.attempts}`"
        for path in (columns.text, columns.answer, columns.label):
            if path is not None:
                require_path(attempts, path, where)

    @property
    def attempts(self) -> int:
        """Return the file's number of attempts."""
        return int(self._loaded().execute("SELECT count(*) FROM attempts").fetchone()[0])

    def attempts_at(self, problems: Iterable[str]) -> int:
        """Return how many attempts these problems have."""
        count = "SELECT count(*) FROM attempts WHERE problem = ?"
        return sum(int(self._loaded().execute(count, (problem,)).fetchone()[0]) for problem in problems)

    def models_at(self, problem: str) -> list[str | None]:
        """Return the models of a problem's attempts, if the file names them."""
        return [] if self._settings.columns.model is None else [row[4] for row in self._rows_of(problem)]

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
        """Keep the attempts for further stages."""

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return a recorded attempt, if any.

        Raises:
            RequestRefused: its text cannot be read.
        """
        rows = self._rows_of(problem.id, 1, index)
        if not rows:
            return None
        ((text, answer, label, refused, _),) = rows
        if refused is not None:
            raise RequestRefused("unusable", refused)
        return Completion(text, None, None, answer, None if label is None else bool(label))

    def _rows_of(self, problem: str, limit: int = -1, first: int = 0) -> list[tuple[Any, ...]]:
        columns = "SELECT text, answer, label, refused, model FROM attempts"
        query = f"{columns} WHERE problem = ? ORDER BY rowid LIMIT ? OFFSET ?"
        return self._loaded().execute(query, (problem, limit, first)).fetchall()

    def _loaded(self) -> sqlite3.Connection:
        if self._rows is None:
            self.check()
            rows = sqlite3.connect("", check_same_thread=False)
            rows.executescript(_TABLE)
            if not rows.executemany("INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)", self._attempts()).rowcount:
                raise PolicyError(f"{self.path}: holds no attempts.")
            rows.execute("CREATE INDEX by_problem ON attempts (problem)")
            self._rows = rows
        return self._rows

    def _attempts(self) -> Iterator[tuple[str, str | None, str | None, bool | None, str | None, str | None]]:
        columns = self._settings.columns
        for number, row in enumerate(read_rows(self.path)):
            where = f"{self.path}, row {number}"
            statement = value_at(row, columns.problem)
            if not isinstance(statement, str):
                raise PolicyError(f"{where}: `{columns.problem}` is not text: {statement!r:.80}.")
            options = parse_options(_cell(row, columns.choices), where)
            problem = problem_id(statement, options, self._settings.domain)
            for attempt in self._attempt_list(row, number):
                answer = _cell(attempt, columns.answer, where, "text", lambda cell: isinstance(cell, str | int | float))
                label = _cell(attempt, columns.label, where, "true or false", lambda cell: cell in (0, 1))
                model = _cell(attempt, columns.model) or _cell(row, columns.model)
                text, refused = _cell(attempt, columns.text), None
                try:
                    if isinstance(text, int | float):
                        text = str(text)
                    elif text is not None:
                        text = response_text(text, self._tags, f"{where}, `{columns.text}`")
                except RequestRefused as why:
                    text, answer, refused = None, None, why.reason
                answer, model = (None if cell is None else str(cell) for cell in (answer, model))
                yield problem, text, answer, None if label is None else bool(label), refused, model

    def _attempt_list(self, row: Row, number: int) -> Sequence[Row]:
        path = self._settings.columns.attempts
        attempts = [row] if path is None else value_at(row, path)
        if attempts is None:
            return []
        if not isinstance(attempts, list) or not all(isinstance(attempt, Mapping) for attempt in attempts):
            raise PolicyError(f"{self.path}, row {number}: `{path}` is not a list of objects: {attempts!r:.80}.")
        return attempts


def _cell(
    row: Row, path: str | None, where: str = "", what: str = "", accepts: Callable[[Any], bool] = lambda _: True
) -> Any:
    cell = None if path is None else value_at(row, path)
    if cell is None or accepts(cell):
        return cell
    raise PolicyError(f"{where}: `{path}` should be {what}, but is {cell!r:.80}.")
