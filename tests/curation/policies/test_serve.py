"""The endpoint policy against two real `vllm serve`, one of which is killed while it answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from curation.config import Decoding, EndpointModel
from curation.policies.endpoint import Endpoint
from curation.records import Completion, PolicyError, RequestRefused
from tests.curation.policies.conftest import asked
from tests.vllm_servers import VllmServers

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
PROBLEMS, ATTEMPTS = 30, 4


def test_a_server_killed_in_the_middle_costs_no_attempt(vllm_servers: VllmServers) -> None:
    servers = vllm_servers.two()
    settings = EndpointModel(
        kind="endpoint",
        model="tiny",
        revision="1",
        urls=tuple(server.url for server in servers),
        prompt="plain",
        in_flight=8,
        decoding=Decoding(temperature=0.7, top_p=0.9, max_tokens=200, seed=5),
    )
    answers: dict[tuple[int, int], Completion | None] = {}

    async def ask(policy: Endpoint, number: int, index: int) -> None:
        answered = await policy.answer(asked(number), index)
        assert (number, index) not in answers
        answers[number, index] = answered
        if len(answers) == PROBLEMS:
            assert min(server.outstanding for server in policy.servers.all) > 0  # both are at work
            servers[0].kill()

    async def run() -> Completion | None:
        async with Endpoint(settings, Path()) as policy:
            await asyncio.gather(*[ask(policy, n, index) for n in range(PROBLEMS) for index in range(ATTEMPTS)])
            assert [server.alive for server in policy.servers.all] == [False, True]
            for n, letters in enumerate((60, 240, 300), 100):  # of 256; vLLM itself would cut max_tokens, or refuse
                with pytest.raises(RequestRefused) as refused:
                    await policy.answer(asked(n, "x" * letters), 0)
                assert refused.value.kind == "too_long"
            return await policy.answer(asked(0), 0)

    again = asyncio.run(run())
    assert len(answers) == PROBLEMS * ATTEMPTS
    for answered in answers.values():
        assert answered is not None
        assert answered.tokens is not None
        assert 0 < answered.tokens <= 200
    assert again is not None
    assert answers[0, 0] is not None
    assert again.text == answers[0, 0].text
    other = settings.model_copy(update={"model": "another", "urls": settings.urls[1:]})
    with pytest.raises(PolicyError, match="holds no model 'another', but tiny"):
        asyncio.run(Endpoint(other, Path()).__aenter__())
