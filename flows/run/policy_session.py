"""A policy from its start to its end, and the event loop that it lives in.

`PolicySession` enters a policy when it is first asked for and leaves it when the block ends. Inside `keep_open` the
sessions of one policy are one: the second stage that asks the same model does not start an engine again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar

from curation.config.policies import PolicySettings
from curation.records import Policy

Result = TypeVar("Result")


class PolicySession:
    """One policy in one event loop. A context manager; leaving it ends the policy, unless it is kept open."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.is_kept = False
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> PolicySession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_kept:
            self.close(kind, error, trace)

    @property
    def is_open(self) -> bool:
        """Return whether the policy runs."""
        return self._runner is not None

    def open(self) -> None:
        """Start the policy; a second call does nothing."""
        if self._runner is None:
            runner = asyncio.Runner()
            entered = False
            try:
                runner.run(self.policy.__aenter__())
                entered = True
            finally:
                if not entered:
                    runner.close()
            self._runner = runner

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of work in the policy's event loop, which is open."""
        assert self._runner is not None
        return self._runner.run(work)

    def close(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """End the policy; a second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with runner:
                runner.run(_leave(self.policy, kind, error, trace))


async def _leave(
    policy: Policy, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    await policy.__aexit__(kind, error, trace)


_KEPT: ContextVar[dict[str, PolicySession] | None] = ContextVar("kept_policies", default=None)


@contextmanager
def keep_open() -> Iterator[None]:
    """Keep policies open from their first stage in this block to the end of it."""
    sessions: dict[str, PolicySession] = {}
    token = _KEPT.set(sessions)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for session in sessions.values():
            session.close()


def policy_session(policy: Policy, settings: PolicySettings) -> PolicySession:
    """Return a session of the policy; inside `keep_open` that of an earlier one of the same settings and key."""
    sessions = _KEPT.get()
    if sessions is None:
        return PolicySession(policy)
    name = f"{policy.key} {settings.digest()}"
    session = sessions.setdefault(name, PolicySession(policy))
    session.is_kept = True
    return session
