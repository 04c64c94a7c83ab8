"""Runs inside a trainer's environment: its own loader reads an exported set, its own call asks for rewards.

    python -m tests.consumers.inside TRAINER EXPORT RESPONSES.jsonl REWARDS.json

A response is {"id", "text"}, the id that of a row. Texts go through a tokenizer of bytes where a trainer judges tokens.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.consumers.tokens import Responses, byte_tokenizer, response_ids, rewards_of


def verl(export: Path, responses: Responses) -> list[float]:
    import torch
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.dataset.rl_dataset import RLHFDataset

    tokenizer = byte_tokenizer()
    called = {"path": str(export / "goldilocks_reward.py"), "name": "verl_score", "reward_kwargs": {}}
    config = OmegaConf.create({"reward": {"custom_reward_function": called}})
    settings = {"filter_overlong_prompts": False, "cache_dir": str(export / "cache"), "max_prompt_length": 100_000}
    problems = RLHFDataset([str(export / "train.parquet")], tokenizer, OmegaConf.create(settings))
    rows = {row["extra_info"]["id"]: row for row in (problems[i] for i in range(len(problems)))}

    async def reward(manager: Any, response: Mapping[str, str]) -> float:
        row, ids = rows[response["id"]], torch.tensor([response_ids(tokenizer, response["text"])])
        keys = ("data_source", "reward_model", "extra_info")
        batch = {"responses": ids, "attention_mask": torch.ones_like(ids)}
        data = DataProto.from_dict(tensors=batch, non_tensors={key: [row[key]] for key in keys})
        return float((await manager.run_single(data))["reward_score"])

    async def all_of_them() -> list[float]:
        manager = NaiveRewardManager(config, tokenizer, get_custom_reward_fn(config))  # it takes the running loop
        return [await reward(manager, response) for response in responses]

    return asyncio.run(all_of_them())


def trl(export: Path, responses: Responses) -> list[float]:
    from datasets import load_dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from curation.scoring.trainers import trl_reward

    tokenizer = byte_tokenizer()
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    small = LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=1, **sizes)
    problems = load_dataset("parquet", data_files=str(export / "train.parquet"), split="train")
    trainer = GRPOTrainer(
        model=LlamaForCausalLM(small),
        reward_funcs=trl_reward,
        args=GRPOConfig(output_dir=str(export / "out"), use_cpu=True, report_to=[], bf16=False),
        train_dataset=problems,
        processing_class=tokenizer,
    )
    rows = {row["id"]: row for row in trainer.train_dataset}
    inputs = [rows[response["id"]] for response in responses]
    completions = [[{"role": "assistant", "content": response["text"]}] for response in responses]
    ids = [response_ids(tokenizer, response["text"]) for response in responses]
    told = trainer._calculate_rewards(inputs, [row["prompt"] for row in inputs], completions, ids)
    return [float(reward) for reward in (told[0] if isinstance(told, tuple) else told)[:, 0].nan_to_num(-1.0)]


def verifiers(export: Path, responses: Responses) -> list[float]:
    import verifiers.v1 as vf
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask
    from verifiers.v1.types import AssistantMessage
    from verifiers.v1.utils.loaders import task_type, taskset_config_type

    sys.path.insert(0, str(export))
    taskset = vf.load_taskset(taskset_config_type("goldilocks-taskset")(id="goldilocks-taskset"))
    tasks = {task.key: task for task in taskset}
    assert task_type("goldilocks-taskset").__name__ == "GoldilocksTask"

    async def reward(response: Mapping[str, str]) -> float:
        task = tasks[response["id"]]
        node = MessageNode(message=AssistantMessage(content=response["text"]), sampled=True)
        named = {"task": TraceTask.model_construct(data=task.data), "agent": AgentInfo.model_construct()}
        trace = vf.Trace.model_construct(**named, nodes=[node], rewards={}, metrics={}, root_reply=None)
        await task.score(trace)
        return float(trace.reward)

    return rewards_of(reward, responses)


def openrlhf(export: Path, responses: Responses) -> list[float]:
    from openrlhf.datasets.prompts_dataset import PromptDataset
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    from curation.scoring import Scorer
    from curation.scoring.service import reward_app
    from tests.local_server import serving

    tokenizer = byte_tokenizer()
    rows = [json.loads(line) for line in (export / "train.jsonl").read_text().splitlines()]
    data = SimpleNamespace(input_key="input", label_key="label", apply_chat_template=True)
    strategy = SimpleNamespace(args=SimpleNamespace(data=data), is_rank_0=lambda: False)
    problems = PromptDataset(rows, tokenizer, strategy)
    asked = {row["id"]: problems[number] for number, row in enumerate(rows)}

    async def reward(executor: Any, response: Mapping[str, str]) -> float:
        _, prompt, label, _ = asked[response["id"]]
        ids = response_ids(tokenizer, response["text"])
        output = SimpleNamespace(token_ids=ids, finish_reason="stop", logprobs=None)

        async def generate(*_: Any, **__: Any) -> Any:
            return SimpleNamespace(outputs=[output])

        limits = SimpleNamespace(max_tokens=10_000, logprobs=None)
        engine = SimpleNamespace(generate=generate)
        told = await executor.execute(prompt, label, limits, 1_000_000, tokenizer, engine)
        return float(told["reward"][0])

    async def all_of_them(address: str) -> list[float]:
        executor = SingleTurnAgentExecutor(f"{address}/get_reward")
        return [await reward(executor, response) for response in responses]

    with Scorer() as scorer, serving(reward_app(scorer)) as address:
        return asyncio.run(all_of_them(address))


def areal(export: Path, responses: Responses) -> list[float]:
    from areal.api.cli_args import GenerationHyperparameters
    from areal.dataset import _get_custom_dataset
    from areal.workflow.rlvr import RLVRWorkflow

    from curation.scoring.trainers import areal_reward

    tokenizer = byte_tokenizer()
    problems = _get_custom_dataset(path=str(export / "train"), type="rl", split="train", tokenizer=tokenizer)
    rows = {row["id"]: row for row in problems}
    workflow = RLVRWorkflow(areal_reward, GenerationHyperparameters(), tokenizer)

    async def reward(response: Mapping[str, str]) -> float:
        row = rows[response["id"]]
        made = SimpleNamespace(input_tokens=[1], output_tokens=response_ids(tokenizer, response["text"]))
        return float(await workflow._compute_rewards(made, "", row))

    return rewards_of(reward, responses)


def slime(export: Path, responses: Responses) -> list[float]:
    from slime.rollout.rm_hub import async_rm, batched_async_rm
    from slime.utils.data import Dataset
    from slime.utils.types import Sample

    tokenizer = byte_tokenizer()
    problems = Dataset(
        str(export / "train.jsonl"), tokenizer, None, None, prompt_key="prompt", label_key="label",
        apply_chat_template=True,
    )  # fmt: skip
    rows = {sample.metadata["id"]: sample for sample in problems.origin_samples}
    arguments = SimpleNamespace(custom_rm_path="curation.scoring.trainers.slime_reward", rm_type=None)

    def answered(response: Mapping[str, str]) -> Any:
        row = rows[response["id"]]
        return Sample(prompt=row.prompt, response=response["text"], label=row.label, metadata=row.metadata)

    async def all_of_them() -> list[float]:
        samples = [answered(response) for response in responses]
        singly = [float(await async_rm(arguments, sample)) for sample in samples]
        assert singly == await batched_async_rm(arguments, samples)
        return singly

    return asyncio.run(all_of_them())


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
    code = {"api_url": "http://localhost:1/test_program", "max_execution_time": 1.0}
    code |= {"pass_rate_reward_threshold": 0.0, "apply_perf_penalty": False}
    judge = {"model": "m", "max_tokens": 1, "max_context_length": 1, "temperature": 1.0, "timeout": 1}
    told = {f"code_{name}": value for name, value in code.items()}
    told |= {f"llm_judge_{name}": value for name, value in judge.items()}
    verifiers_by_name = build_all_verifiers(SimpleNamespace(**told, seed=1, remap_verifier=None))
    problems = load_dataset("parquet", data_files=str(export / "train.parquet"), split="train")
    tokenizer = byte_tokenizer()
    rows = {row["id"]: rlvr_tokenize_v3(dict(row), tokenizer) for row in problems}
    asked = [rows[response["id"]] for response in responses]
    texts = [response["text"] for response in responses]
    ids = [response_ids(tokenizer, text) for text in texts]
    truths = [row["ground_truth"] for row in asked], [row["dataset"] for row in asked]
    rewards, _ = asyncio.run(apply_verifiable_reward(verifiers_by_name, ids, texts, *truths))
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

    return rewards_of(reward, responses)


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


NAMED = (verl, trl, verifiers, openrlhf, areal, slime, skyrl, nemo_rl, nemo_gym, open_instruct, roll, tinker, art)
TRAINERS = {trainer.__name__.replace("_", "-"): trainer for trainer in NAMED}


def main() -> None:
    name, export, responses, out = sys.argv[1:]
    asked = [json.loads(line) for line in Path(responses).read_text().splitlines()]
    Path(out).write_text(json.dumps(TRAINERS[name](Path(export), asked)))


if __name__ == "__main__":
    main()
