"""The endpoint policy against real server processes that refuse, hang, break connections and die."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.config import Decoding, EndpointModel, RecordedModel
from curation.config.policies import AttemptColumns
from curation.policies.endpoint import Endpoint
from curation.policies.recorded import Recorded
from curation.policies.seeds import seed_of
from curation.records import Completion, Domain, Outcome, Policy, PolicyError, PromptRequest, RequestRefused, problem_id
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from tests.curation.policies.conftest import asked
from tests.patience import patient
from tests.server_process import ServerProcess
from tests.waiting import until

pytest.importorskip("aiohttp")
STAND_IN = Path(__file__).with_name("stand_in.py")


class StandIn(ServerProcess):
    """A server of models."""

    def __init__(
        self, journal: Path, plan: str = "", key: str = "", port: int = 0, model: str = "m", says: Path | None = None
    ) -> None:
        super().__init__(STAND_IN, journal, model, plan, key, *([str(says)] if says is not None else []), port=port)
        self.url += "/v1"

    def seeds(self, event: str) -> list[int]:
        return [line["seed"] for line in self.events(event)]


Start = Callable[..., StandIn]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[StandIn] = []

    def start(plan: str = "", key: str = "", port: int = 0, model: str = "m") -> StandIn:
        running.append(StandIn(tmp_path / f"{len(running)}.jsonl", plan, key, port, model))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch)


def settings(*servers: StandIn | str, **changes: Any) -> EndpointModel:
    urls = tuple(server if isinstance(server, str) else server.url for server in servers)
    return EndpointModel(
        **{"kind": "endpoint", "model": "m", "revision": "1", "prompt": "plain", "urls": urls} | changes
    )


def inside(one: EndpointModel, work: Callable[[Endpoint], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with Endpoint(one, Path()) as policy:
            return await work(policy)

    return asyncio.run(run())


async def answer_all(policy: Endpoint, count: int) -> list[Completion]:
    return await asyncio.gather(*[policy.answer(asked(n), 0) for n in range(count)])


def seeds(count: int) -> list[int]:
    return [seed_of(asked(n).id, 0) for n in range(count)]


def texts(answers: list[Completion]) -> list[str | None]:
    return [answered.text for answered in answers]


def test_servers_are_asked_for_tags_that_may_be_special_tokens() -> None:
    bodies = {}
    for thinking in ("<think>", "[THINK]", "none"):
        policy = Endpoint(settings("http://localhost:1/v1", prompt="solve", thinking=thinking), Path())
        bodies[thinking] = policy._body(asked(0), 0)
    assert [body.get("skip_special_tokens") for body in bodies.values()] == [None, False, None]
    systems = [body["messages"][0]["content"] for body in bodies.values()]
    assert ["[THINK]" in system for system in systems] == [False, True, False]
    assert ["<think>" in system for system in systems] == [True, False, False]


@pytest.mark.parametrize("word", ["429", "503", "drop", "garbage"])
def test_what_fails_for_now_is_asked_again(start: Start, word: str) -> None:
    server = start(f"ok {word} {word} ok {word}")
    answers = inside(settings(server), lambda policy: answer_all(policy, 8))
    assert texts(answers) == [f"{seed} What is 2 + 2?" for seed in seeds(8)]
    assert sorted(server.seeds("answered")) == sorted(seeds(8))
    assert len(server.seeds("asked")) == 11


@pytest.mark.slow
def test_a_server_that_hangs_is_given_up_for_another(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, answer_s=4.0)
    servers = [start("hang hang"), start()]
    answers = inside(settings(*servers), lambda policy: answer_all(policy, 6))
    assert None not in answers
    answered = [seed for server in servers for seed in server.seeds("answered")]
    assert sorted(answered) == sorted(seeds(6))


def test_requests_of_a_dead_server_move_and_it_is_taken_back(start: Start) -> None:
    first, second = start("slow " * 5 + "die"), start("slow " * 200)

    async def work(policy: Endpoint) -> list[Completion]:
        answers = await answer_all(policy, 40)
        assert [server.alive for server in policy.servers.all] == [False, True]
        first.stop()
        again = start(port=first.port)
        await until(lambda: policy.servers.all[0].alive)
        answers += await asyncio.gather(*[policy.answer(asked(n), 1) for n in range(20)])
        assert len(again.seeds("answered")) > 0
        return answers

    answers = inside(settings(first, second, in_flight=8), work)
    assert None not in answers
    given = Counter(first.seeds("answered") + second.seeds("answered"))
    assert {seed: given[seed] for seed in seeds(40)} == dict.fromkeys(seeds(40), 1)


def test_cancelling_closes_the_request(start: Start) -> None:
    server = start("hang")

    async def work(policy: Endpoint) -> None:
        task = asyncio.create_task(policy.answer(asked(), 0))
        await until(lambda: server.seeds("asked"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.seeds("closed"))
        assert policy.servers.all[0].outstanding == 0
        assert await policy.answer(asked(1), 0) is not None

    inside(settings(server), work)
    assert server.seeds("closed") == seeds(1)


def test_a_prompt_that_is_too_long_gets_no_attempt(start: Start) -> None:
    async def work(policy: Endpoint) -> None:
        with pytest.raises(RequestRefused, match="maximum context length is 8 tokens") as caught:
            await policy.answer(asked(), 0)
        assert caught.value.kind == "too_long"
        assert await policy.answer(asked(1), 0) is not None

    server = start("long")
    inside(settings(server), work)
    assert len(server.seeds("asked")) == 2  # the refused prompt is not asked again


def test_a_server_that_cuts_the_room_silently_is_seen_through(start: Start) -> None:
    async def work(policy: Endpoint) -> list[Completion]:
        return [await policy.answer(asked(n), 0) for n in range(2)]

    tight = {"decoding": Decoding(max_tokens=98)}  # the stand-in counts 3 prompt tokens
    with pytest.raises(RequestRefused, match="a prompt of 3 tokens leaves no room"):
        inside(settings(start(model="m:100"), **tight), work)
    assert len(inside(settings(start(model="m:101"), **tight), work)) == 2
    with pytest.raises(PolicyError, match="leaves no room for a prompt in its context of 98 tokens"):
        inside(settings(start(model="m:98"), **tight), work)


def refusal(one: EndpointModel, count: int = 1) -> str:
    with pytest.raises(PolicyError) as caught:
        inside(one, lambda policy: answer_all(policy, count))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_no_second_try_mends_is_said(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    locked, other, plain = start(key="secret"), start(model="another"), start("400 403 404")
    assert f"{locked.url}: refuses a request without key: api_key_env (401 wrong key)" in refusal(settings(locked))
    monkeypatch.setenv("KEY_OF_TEST", "guess")
    said = refusal(settings(locked, api_key_env="KEY_OF_TEST"))
    assert "refuses the key in KEY_OF_TEST" in said
    assert "guess" not in said
    assert f"{other.url}: holds no model 'm', but another" in refusal(settings(other))
    assert f"{plain.url}: 400 not now." in refusal(settings(plain))
    assert "403" in refusal(settings(plain))
    assert "has no such address or model" in refusal(settings(plain))
    monkeypatch.setenv("KEY_OF_TEST", "secret")
    assert inside(settings(locked, api_key_env="KEY_OF_TEST"), lambda policy: answer_all(policy, 1)) != [None]
    for broken in ("secret\n", "sec\r\nX-Other: ret", "secret\x7f"):
        monkeypatch.setenv("KEY_OF_TEST", broken)
        with pytest.raises(PolicyError, match="the key in KEY_OF_TEST has a line break or another control character"):
            Endpoint(settings(locked, api_key_env="KEY_OF_TEST"), Path())
    monkeypatch.delenv("KEY_OF_TEST")
    with pytest.raises(PolicyError, match="the environment has no KEY_OF_TEST"):
        Endpoint(settings(locked, api_key_env="KEY_OF_TEST"), Path())


def test_all_servers_dead_names_each(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = [start(), start()]
    for server in servers:
        server.stop()
    said = refusal(settings(*servers))
    assert all(f"{server.url}: cannot be reached" in said for server in servers)
    dying = [start("die"), start("die")]
    patient(monkeypatch, give_up_s=0.3)
    said = refusal(settings(*dying), count=4)
    assert "no server has answered for 0.3 s" in said
    assert all(server.url in said for server in dying)


@pytest.mark.parametrize(
    ("plan", "kind", "asked_of"),
    [
        ("400", "400", [0, 1]),
        ("500", "500", [1, 2]),
        ("garbage", "unusable", [1, 2]),
        ("drop", "no_answer", [1, 2]),
    ],
)
def test_what_living_servers_do_not_answer_is_refused_after_another_try_if_it_may_help(
    start: Start, monkeypatch: pytest.MonkeyPatch, plan: str, kind: str, asked_of: list[int]
) -> None:
    patient(monkeypatch, retries=2)
    servers = [start(f"{plan} " * 2), start(f"{plan} " * 2)]

    async def work(policy: Endpoint) -> None:
        with pytest.raises(RequestRefused) as refused:
            await policy.answer(asked(), 0)
        assert refused.value.kind == kind
        assert sorted(len(server.seeds("asked")) for server in servers) == asked_of

    inside(settings(*servers), work)


@pytest.mark.parametrize("plan", ["401", "429 " * 5])
def test_keys_models_and_busy_servers_are_no_refusals_of_a_prompt(
    start: Start, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    patient(monkeypatch, retries=2)
    with pytest.raises(PolicyError) as ended:
        inside(settings(start(plan)), lambda policy: answer_all(policy, 1))
    assert not isinstance(ended.value, RequestRefused)


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


THOUGHTS, SAID = "Perhaps \\boxed{99}.", "The answer is $\\frac{24}{2}$."
MISREAD, TOOL = {"type": "image_url", "image_url": "x"}, {"type": "function", "function": {"name": "f"}}
REPLIES: dict[str, Any] = {
    "tags": f"<think>\n{THOUGHTS}\n</think>\n{SAID}",
    "apart": {"content": SAID, "reasoning_content": THOUGHTS, "tool_calls": []},
    "parts": {"content": [{"type": "thinking", "thinking": [text(THOUGHTS)]}, text(SAID)]},
    "unknown": {"content": [text(SAID), MISREAD]},
    "tools": {"content": None, "tool_calls": [TOOL]},
}


def test_one_reply_in_every_form_of_servers_and_files_has_one_verdict(tmp_path: Path) -> None:
    """Forms that are known are judged alike; what cannot be read is refused, once, and not judged."""
    (tmp_path / "says.json").write_text(json.dumps([[f"by {form}", said] for form, said in REPLIES.items()]))
    rows = [json.dumps({"problem": f"by {form}", "reply": said}) for form, said in REPLIES.items()]
    (tmp_path / "replies.jsonl").write_text("\n".join(rows))
    columns = AttemptColumns(text="reply")
    recorded = Recorded(RecordedModel(kind="recorded", name="m@1", path="replies.jsonl", columns=columns), tmp_path)
    server = StandIn(tmp_path / "journal.jsonl", says=tmp_path / "says.json")

    async def answers(policy: Policy) -> list[Completion | BaseException | None]:
        names = [f"by {form}" for form in REPLIES]
        problems = [PromptRequest(problem_id(name), name, Domain.MATH, "en") for name in names]
        return await asyncio.gather(*(policy.answer(one, 0) for one in problems), return_exceptions=True)

    try:
        asked_of = inside(settings(server), answers)
    finally:
        server.stop()
    assert len(server.seeds("asked")) == len(REPLIES)
    with MathJudge(1) as judge:
        for told in (asked_of, asyncio.run(answers(recorded))):
            for refused in told[3:]:
                assert isinstance(refused, RequestRefused)
                assert refused.kind == "unusable"
            responses = [Response(answer.text, None) for answer in told[:3] if isinstance(answer, Completion)]
            (result,) = judge.judge([JudgeTask("p", "12", "en", tuple(responses))])
            assert [verdict.outcome for verdict in result.verdicts] == [Outcome.CORRECT] * 3
            assert {response.text for response in responses} == {REPLIES["tags"]}
