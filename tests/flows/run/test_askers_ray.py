"""The way to an asker on a cluster, where its node goes: no Ray is needed for that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from flows.run.askers_ray import ActorChannel


class RayActorError(Exception):
    """As Ray's: the actor or its node died."""


class ObjectLostError(Exception):
    """As Ray's: what the actor had answered lay on a node that died. Large answers lie there until they are fetched."""


RAY = SimpleNamespace(exceptions=SimpleNamespace(RayActorError=RayActorError, ObjectLostError=ObjectLostError))


def received(error: Exception) -> Any:
    async def receive() -> Any:
        raise error

    asker = SimpleNamespace(receive=SimpleNamespace(remote=receive))
    return asyncio.run(ActorChannel(RAY, asker).receive())


def test_an_asker_whose_node_died_is_gone_also_where_only_its_answer_is_lost() -> None:
    assert received(RayActorError()) is None
    assert received(ObjectLostError()) is None


def test_an_error_of_the_asker_itself_is_no_death() -> None:
    with pytest.raises(ZeroDivisionError):
        received(ZeroDivisionError())
