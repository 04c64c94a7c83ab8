"""A reward worker of ROLL for the domain `goldilocks`."""

from __future__ import annotations

from typing import Any

import torch
from roll.configs.worker_config import WorkerConfig
from roll.distributed.executor.worker import Worker
from roll.distributed.scheduler.decorator import Dispatch, register
from roll.distributed.scheduler.protocol import DataProto
from roll.models.model_providers import default_tokenizer_provider

from curation.scoring.trainers import scores_of, without_end


class GoldilocksRewardWorker(Worker):
    """Judges batches of responses."""

    def __init__(self, worker_config: WorkerConfig) -> None:
        super().__init__(worker_config=worker_config)
        self.rank_info.dp_rank = self.rank_info.rank
        self.rank_info.dp_size = self.rank_info.world_size
        self.tokenizer = default_tokenizer_provider(model_args=self.worker_config.model_args)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def initialize(self, pipeline_config: Any) -> None:
        """Do nothing: the judge starts with the first batch."""

    @register(dispatch_mode=Dispatch.DP_MP_COMPUTE, clear_cache=False)
    def compute_rewards(self, data: DataProto) -> DataProto:
        """Return ``scores`` and ``response_level_rewards`` [B], and zeros as ``token_level_rewards`` [B, T]."""
        responses = data.batch["responses"]
        rewards = torch.tensor(rewards_of(self.tokenizer, responses, data.non_tensor_batch["ground_truth"]))
        return DataProto.from_dict(
            tensors={
                "token_level_rewards": torch.zeros_like(responses, dtype=torch.float16),
                "response_level_rewards": rewards.to(torch.float16),
                "scores": rewards.to(torch.float16),
            }
        )


def rewards_of(tokenizer: Any, responses: Any, records: Any) -> list[float]:
    """Return the rewards of responses (token ids [B, T])."""
    texts = tokenizer.batch_decode(responses, skip_special_tokens=False)
    pairs = [(str(record), without_end(text)) for record, text in zip(records, texts, strict=True)]
    return [score.reward or 0.0 for score in scores_of(pairs, {})]
