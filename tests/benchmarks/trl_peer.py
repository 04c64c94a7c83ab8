"""TRL's side of `bench_trainer`: GRPOTrainer on given prompts, in an environment of its own that has TRL.

    PEER_PYTHON tests/benchmarks/trl_peer.py WORK.json OUT.json

Imports nothing of this project. One optimiser step per generated batch, as ours; transformers' own generation; no
gradient checkpointing, no reference model. WORK names model, prompts, sizes; OUT gets one row a step.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


def main() -> None:
    work = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(work["threads"])
    steps: list[dict[str, Any]] = []
    step_tokens: dict[str, int] = {}

    def correct(completions: list[Any], completion_ids: list[list[int]], answer: list[str], **_: Any) -> list[float]:
        boxed = [BOXED.findall(completion[0]["content"]) for completion in completions]
        rewards = [float(answers[-1:] == [gold]) for answers, gold in zip(boxed, answer, strict=True)]
        step_tokens.update(tokens=sum(map(len, completion_ids)))
        return rewards

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            steps.append({"at": time.perf_counter(), "cpu": time.process_time(), **step_tokens})

    config = GRPOConfig(
        output_dir=work["folder"],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=work["batch"],
        num_generations=work["group"],
        max_completion_length=work["max_tokens"],
        max_steps=work["steps"],
        learning_rate=work["learning_rate"],
        lr_scheduler_type="constant",
        adam_beta2=0.95,
        max_grad_norm=1.0,
        temperature=1.0,
        beta=0.0,
        epsilon=0.2,
        epsilon_high=0.28,
        scale_rewards="batch",
        loss_type="dapo",
        seed=work["seed"],
        logging_steps=work["steps"],
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    rows = [json.loads(line) for line in Path(work["prompts"]).read_text().splitlines()]
    data = Dataset.from_list(
        [{"prompt": [{"role": "user", "content": row["statement"]}], "answer": row["answer"]} for row in rows]
    )
    trainer = GRPOTrainer(
        model=work["model"], reward_funcs=correct, args=config, train_dataset=data, callbacks=[Clock()]
    )
    trainer.train()
    Path(sys.argv[2]).write_text(json.dumps(steps))


if __name__ == "__main__":
    main()
