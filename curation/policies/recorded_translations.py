"""A translator that reads from a file: translations made elsewhere, under the `Policy` protocol.

The file has one translation a row: ``id`` of the problem (or ``original``, its text, from which the id is made),
``target`` (ISO 639-1), ``text`` (the translated statement, or a whole reply with its tags), and optionally ``answer``,
``options`` (a list) and ``index`` (the try, from 0). Rows of the same problem and language without an index are tries
in the file's order. A translation back has the id of its problem with ``#back`` behind it.

Invariants: a try that the file does not hold is None; nothing is made up. The file is held in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.prompts.translating import TRANSLATE
from curation.records import AttemptKey, Completion, PolicyError, PromptRequest, problem_id
from curation.sources.files import read_rows
from curation.sources.rows import Row
from curation.storage.stages import file_digest


class RecordedTranslations:
    """Translations of a file.

    Args:
        path: .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv.
        name: ``model@revision`` of whoever made them.

    Raises:
        SourceError: the file is missing or unreadable, on entering.
        PolicyError: a row lacks its id, language or text, on entering.
    """

    def __init__(self, path: Path, name: str = "recorded@translations") -> None:
        self.path = path
        self.in_flight = 64
        digest = file_digest(path) if path.is_file() else ""
        sampling = hashlib.blake2b(digest.encode(), digest_size=6).hexdigest()
        self.key = AttemptKey(name, TRANSLATE.version, sampling)
        self._translations: dict[tuple[str, str], dict[int, str]] | None = None

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the store notes beside the key."""
        return {"kind": "recorded translations", "file": self.path.name}

    async def __aenter__(self) -> Self:
        self._translations = self._load()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._translations = None

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return the file's translation of this problem into ``details["target"]``, None where it holds fewer tries."""
        if self._translations is None:
            self._translations = self._load()
        tries = self._translations.get((problem.id, problem.details["target"]), {})
        text = tries.get(index)
        return Completion(text, "stop", None) if text is not None else None

    def _load(self) -> dict[tuple[str, str], dict[int, str]]:
        translations: dict[tuple[str, str], dict[int, str]] = {}
        for number, row in enumerate(read_rows(self.path)):
            tries = translations.setdefault(self._place(row, number), {})
            index = row.get("index")
            tries[len(tries) if index is None else int(index)] = self._reply(row, number)
        return translations

    def _place(self, row: Row, number: int) -> tuple[str, str]:
        name, original, target = row.get("id"), row.get("original"), row.get("target")
        if name is None and isinstance(original, str):
            name = problem_id(original)
        if not isinstance(name, str) or not isinstance(target, str):
            raise PolicyError(f"{self.path}, row {number}: a translation needs `id` (or `original`) and `target`.")
        return name, target

    def _reply(self, row: Row, number: int) -> str:
        text = row.get("text")
        if not isinstance(text, str):
            raise PolicyError(f"{self.path}, row {number}: `text` should be the translation, but is {text!r:.80}.")
        if "<translation>" in text:
            return text
        parts = [f"<translation>\n{text}\n</translation>"]
        if row.get("answer") is not None:
            parts.append(f"<answer>{row['answer']}</answer>")
        if row.get("options"):
            parts.append("<options>\n" + "\n".join(map(str, row["options"])) + "\n</options>")
        return "\n".join(parts)
