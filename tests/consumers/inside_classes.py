"""The trainers of `inside.py` that want a class of their own for an environment or a verifier."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.consumers.tokens import Responses, byte_tokenizer, response_ids


def skyrl(export: Path, responses: Responses) -> list[float]:
    import skyrl_gym
    from skyrl.train.dataset import PromptDataset

    from curation.scoring.consumers.skyrl import register_goldilocks

    register_goldilocks()
    problems = PromptDataset(str(export / "train.parquet"), byte_tokenizer(), 100_000, num_workers=1)
    items = problems.collate_fn([problems[number] for number in range(len(problems))])
    rows = {item["env_extras"]["extra_info"]["id"]: item for item in items}
    rewards = []
    for response in responses:
        row = rows[response["id"]]
        environment = skyrl_gym.make(row["env_class"], env_config={}, extras=row["env_extras"])
        environment.init(row["prompt"])
        told = environment.step(response["text"])
        assert told["done"]
        rewards.append(float(told["reward"]))
    return rewards


def nemo_rl(export: Path, responses: Responses) -> list[float]:
    from nemo_rl.data.datasets import AllTaskProcessedDataset, load_response_dataset
    from nemo_rl.distributed.ray_actor_environment_registry import get_actor_python_env
    from nemo_rl.environments.utils import ENV_REGISTRY

    from curation.scoring.consumers.nemo_rl import GoldilocksEnvironment, register_goldilocks

    register_goldilocks()
    assert get_actor_python_env(ENV_REGISTRY["goldilocks"]["actor_class_fqn"])
    told = {
        "dataset_name": "ResponseDataset",
        "data_path": str(export / "train.jsonl"),
        "processor": "math_hf_data_processor",
        "system_prompt_file": str(export / "system_prompt.txt"),
        "prompt_file": None,
        "env_name": "goldilocks",
        "split": "train",
    }
    data = load_response_dataset(told)
    processors = {data.task_name: (data.task_spec, data.processor)}
    problems = AllTaskProcessedDataset(data.dataset, byte_tokenizer(), None, processors, max_seq_length=100_000)
    rows = [problems[number] for number in range(len(problems))]
    known = {json.loads(row["extra_env_info"]["ground_truth"])["id"]: row for row in rows}
    environment = GoldilocksEnvironment.__ray_metadata__.modified_class({})  # the actor's class, in this process
    asked = [known[response["id"]] for response in responses]
    logs = [
        [*row["message_log"], {"role": "assistant", "content": response["text"] + "<|im_end|>"}]
        for row, response in zip(asked, responses, strict=True)
    ]
    made = environment.step(logs, [row["extra_env_info"] for row in asked])
    assert bool(made.terminateds.all())
    return [float(reward) for reward in made.rewards]


def nemo_gym(export: Path, responses: Responses) -> list[float]:
    from unittest.mock import MagicMock

    from fastapi.testclient import TestClient
    from nemo_gym.server_utils import ServerClient

    from curation.scoring.consumers.nemo_gym import GoldilocksConfig, GoldilocksResourcesServer

    config = GoldilocksConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="goldilocks", domain="math")
    server = GoldilocksResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    client = TestClient(server.setup_webserver())
    rows = {row["id"]: row for row in map(json.loads, (export / "train.jsonl").read_text().splitlines())}
    rewards = []
    for response in responses:
        content = {"type": "output_text", "text": response["text"], "annotations": []}
        message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
        made = {
            "id": "r", "created_at": 0, "model": "m", "object": "response", "output": [message],
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        told = client.post("/verify", json={**rows[response["id"]], "response": made})
        assert told.status_code == 200, told.text
        rewards.append(float(told.json()["reward"]))
    return rewards


def open_instruct(export: Path, responses: Responses) -> list[float]:
    from datasets import load_dataset
    from open_instruct.dataset_transformation import rlvr_tokenize_v3
    from open_instruct.ground_truth_utils import VerifierFunction, apply_verifiable_reward, build_all_verifiers

    import curation.scoring.consumers.open_instruct as ours

    assert ours.GoldilocksVerifier in VerifierFunction.__subclasses__()
    told = SimpleNamespace(
        code_api_url="http://localhost:1/test_program",
        code_max_execution_time=1.0,
        code_pass_rate_reward_threshold=0.0,
        code_apply_perf_penalty=False,
        llm_judge_model="m",
        llm_judge_max_tokens=1,
        llm_judge_max_context_length=1,
        llm_judge_temperature=1.0,
        llm_judge_timeout=1,
        seed=1,
        remap_verifier=None,
    )
    verifiers_by_name = build_all_verifiers(told)
    problems = load_dataset("parquet", data_files=str(export / "train.parquet"), split="train")
    tokenizer = byte_tokenizer()
    rows = {row["id"]: rlvr_tokenize_v3(dict(row), tokenizer) for row in problems}
    asked = [rows[response["id"]] for response in responses]
    rewards, _ = asyncio.run(
        apply_verifiable_reward(
            verifiers_by_name,
            [response_ids(tokenizer, response["text"]) for response in responses],
            [response["text"] for response in responses],
            [row["ground_truth"] for row in asked],
            [row["dataset"] for row in asked],
        )
    )
    return [float(reward) for reward in rewards]


def roll(export: Path, responses: Responses) -> list[float]:
    import numpy
    import torch
    from datasets import load_dataset
    from roll.distributed.scheduler.protocol import DataProto
    from roll.pipeline.rlvr.rlvr_pipeline import get_encode_function, update_dataset_domain

    from curation.scoring.consumers.roll import GoldilocksRewardWorker

    tokenizer = byte_tokenizer()
    problems = load_dataset("json", data_files=str(export / "train.jsonl"), split="train")
    encode = get_encode_function("native", tokenizer, SimpleNamespace(messages="messages", tag="tag"))
    problems = problems.map(encode, batched=True).map(lambda row: update_dataset_domain({}, row))
    assert set(problems["domain"]) == {"goldilocks"}
    rows = {row["id"]: row for row in problems}
    worker = GoldilocksRewardWorker.__new__(GoldilocksRewardWorker)  # its __init__ wants Ray's storage
    worker.tokenizer = tokenizer
    ids = [response_ids(tokenizer, response["text"]) for response in responses]
    width = max(map(len, ids))
    padded = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in ids])
    truths = numpy.array([rows[response["id"]]["ground_truth"] for response in responses], dtype=object)
    data = DataProto.from_dict(tensors={"responses": padded}, non_tensors={"ground_truth": truths})
    return [float(reward) for reward in worker.compute_rewards(data).batch["response_level_rewards"]]


def tinker(export: Path, responses: Responses) -> list[float]:
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.renderers import get_renderer
    from tinker_cookbook.rl.rollouts import do_single_rollout

    from curation.scoring.consumers.tinker import GoldilocksDataset

    tokenizer = byte_tokenizer()
    lines = (export / "train.jsonl").read_text().splitlines()
    problems = GoldilocksDataset([json.loads(line) for line in lines], 8, 1, get_renderer("role_colon", tokenizer), 0)
    builders = [builder for index in range(len(problems)) for builder in problems.get_batch(index)]
    known = {json.loads(builder.env_thunk().record)["id"]: builder for builder in builders}

    async def reward(response: Mapping[str, str]) -> float:
        async def policy(*_: Any, **__: Any) -> Any:
            ids = tokenizer(response["text"] + "\n\nUser:", add_special_tokens=False)["input_ids"]
            return TokensWithLogprobs(tokens=ids, maybe_logprobs=[0.0] * len(ids))

        (environment,) = await known[response["id"]].make_envs()
        trajectory = await do_single_rollout(policy, environment)
        return float(sum(step.reward for step in trajectory.transitions))

    async def all_of_them() -> list[float]:
        return [await reward(response) for response in responses]

    return asyncio.run(all_of_them())


def art(export: Path, responses: Responses) -> list[float]:
    import art as openpipe_art

    from curation.scoring.trainers import art_reward

    rows = {row["id"]: row for row in map(json.loads, (export / "train.jsonl").read_text().splitlines())}

    async def trajectory(response: Mapping[str, str]) -> Any:
        row = rows[response["id"]]
        answer = {"role": "assistant", "content": response["text"]}
        made = openpipe_art.Trajectory(messages_and_choices=[*row["messages"], answer])
        made.reward = await art_reward(row, made)
        return made.finish()

    async def group(response: Mapping[str, str]) -> Any:
        return await openpipe_art.TrajectoryGroup([trajectory(response)])

    async def all_of_them() -> list[float]:
        groups = await openpipe_art.gather_trajectory_groups(map(group, responses), pbar_desc=None)
        return [float(made.trajectories[0].reward) for made in groups]

    return asyncio.run(all_of_them())
