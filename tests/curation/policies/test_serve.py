"""The endpoint policy against a real vLLM server, whose answers are counted, the same again and never cut in silence.

Servers that die are played by stand-ins, in `test_endpoint`.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from curation.config import Decoding, EndpointModel
from curation.policies.endpoint import Endpoint
from curation.records import Completion, PolicyError, RequestRefused
from tests.curation.policies.conftest import asked
from tests.vllm_servers import VllmServers

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def test_a_real_server_answers_each_attempt(vllm_servers: VllmServers) -> None:
    decoding = Decoding(temperature=0.7, top_p=0.9, max_tokens=200)
    about: Any = {"kind": "endpoint", "model": "tiny", "revision": "1", "prompt": "plain", "in_flight": 8}
    settings = EndpointModel(**about, urls=(vllm_servers.one().url,), decoding=decoding)

    async def run() -> tuple[list[Completion], Completion]:
        async with Endpoint(settings, Path()) as policy:
            made = await asyncio.gather(*(policy.answer(asked(n), index) for n in range(8) for index in range(2)))
            for n, letters in enumerate((60, 240, 300), 100):  # of 256; vLLM itself would cut max_tokens, or refuse
                with pytest.raises(RequestRefused) as refused:
                    await policy.answer(asked(n, "x" * letters), 0)
                assert refused.value.kind == "too_long"
            return made, await policy.answer(asked(0), 0)

    made, again = asyncio.run(run())
    assert all(0 < (one.tokens or 0) <= 200 for one in made)
    assert again.text == made[0].text
    other = settings.model_copy(update={"model": "another"})
    with pytest.raises(PolicyError, match="holds no model 'another', but tiny"):
        asyncio.run(Endpoint(other, Path()).__aenter__())
