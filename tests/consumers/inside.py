"""Runs inside a trainer's environment: its own loader reads an exported set, its own call asks for rewards.

    python -m tests.consumers.inside TRAINER EXPORT RESPONSES.jsonl REWARDS.json

A response is {"id", "text"}, the id that of a row. Texts go through a tokenizer of bytes where a trainer judges tokens.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.consumers import inside_classes
from tests.consumers.tokens import Responses, byte_tokenizer, response_ids


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
        manager = NaiveRewardManager(config, tokenizer, get_custom_reward_fn(config))
        return [await reward(manager, response) for response in responses]

    return asyncio.run(all_of_them())


def trl(export: Path, responses: Responses) -> list[float]:
    from datasets import load_dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from curation.scoring.trainers import trl_reward

    tokenizer = byte_tokenizer()
    small = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
    )
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
        trace = vf.Trace.model_construct(
            task=TraceTask.model_construct(data=task.data),
            agent=AgentInfo.model_construct(),
            nodes=[node],
            rewards={},
            metrics={},
            root_reply=None,
        )
        await task.score(trace)
        return float(trace.reward)

    async def all_of_them() -> list[float]:
        return [await reward(response) for response in responses]

    return asyncio.run(all_of_them())


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
        output = SimpleNamespace(
            token_ids=response_ids(tokenizer, response["text"]), finish_reason="stop", logprobs=None
        )

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

    async def all_of_them() -> list[float]:
        return [await reward(response) for response in responses]

    return asyncio.run(all_of_them())


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


TRAINERS: Mapping[str, Callable[[Path, Responses], list[float]]] = {
    "verl": verl,
    "trl": trl,
    "verifiers": verifiers,
    "openrlhf": openrlhf,
    "areal": areal,
    "slime": slime,
    "skyrl": inside_classes.skyrl,
    "nemo-rl": inside_classes.nemo_rl,
    "nemo-gym": inside_classes.nemo_gym,
    "open-instruct": inside_classes.open_instruct,
    "roll": inside_classes.roll,
    "tinker": inside_classes.tinker,
    "art": inside_classes.art,
}


def main() -> None:
    name, export, responses, out = sys.argv[1:]
    asked = [json.loads(line) for line in Path(responses).read_text().splitlines()]
    Path(out).write_text(json.dumps(TRAINERS[name](Path(export), asked)))


if __name__ == "__main__":
    main()
