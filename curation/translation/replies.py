"""A translator whose replies are kept as they come, refused ones too: what was asked once is not asked again.

A live translator works for hours and may break off. `StoredReplies` writes each reply to a file before it is looked at,
under a hash of who was asked and of the whole request; after a break, or with other invariants, the same request is
answered from the file. A retry names what was wrong with the try before it, so other reasons are another request.

Invariants: a reply is on disk before `answer` returns it; None (no answer) is not kept. One process writes at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.records import AttemptKey, Completion, Policy, PromptRequest
from curation.storage.journal import Journal, Name


class StoredReplies:
    """A policy with a file of its replies. Enters and leaves the policy with itself.

    Args:
        path: JSON lines; the file and its folder are made when the first reply comes.
    """

    def __init__(self, policy: Policy, path: Path) -> None:
        self._policy = policy
        self._path = path
        self._journal: Journal | None = None
        self.key: AttemptKey = policy.key
        self.in_flight = policy.in_flight
        self.reused = 0

    @property
    def about(self) -> Mapping[str, Any]:
        """Return the policy's own description."""
        return self._policy.about

    async def __aenter__(self) -> Self:
        self._journal = Journal(self._path, writable=True)
        await self._policy.__aenter__()
        self.key = self._policy.key
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._journal is not None:
            self._journal.close()
        await self._policy.__aexit__(kind, error, trace)

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return the reply to the same request from the file, else ask the policy and store its reply."""
        assert self._journal is not None
        name = self._name(problem, index)
        if name in self._journal:
            (line,) = self._journal.read([name])
            self.reused += 1
            return Completion(line["text"], line["finish"], line["tokens"])
        completion = await self._policy.answer(problem, index)
        if completion is not None and name not in self._journal:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            line = {"problem": problem.id, "target": problem.details.get("target"), "text": completion.text}
            self._journal.add([(name, {**line, "finish": completion.finish, "tokens": completion.tokens})])
        return completion

    def _name(self, problem: PromptRequest, index: int) -> Name:
        """Return the hash of who is asked and of the whole request, with the index of the try."""
        request = [asdict(self.key), problem.id, problem.statement, sorted(problem.details.items())]
        return hashlib.blake2b(json.dumps(request).encode(), digest_size=12).hexdigest(), index
