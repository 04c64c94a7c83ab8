"""Two ranks take the steps of one, also from a checkpoint; a round that rank 0 cannot collate ends the step of both."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from tests.training.optimisation.ranks import run_on_ranks
from tests.training.optimisation.test_packing import half_marked
from tests.training.optimisation.test_trainer import recipe, samples, solo
from training.embedded_model import WEIGHTS
from training.objectives.grpo import GrpoSettings
from training.optimisation import trainer as trainer_module
from training.optimisation.checkpoint import PendingCheckpoint, last_checkpoint, restore_trainer
from training.optimisation.distributed import DistributedContext, ShareNotMade, end_process
from training.optimisation.model import load_model, load_tokenizer
from training.optimisation.packing import PackingError
from training.optimisation.trainer import Trainer

pytestmark = pytest.mark.slow


def two_steps(trainer: Trainer, run: Path) -> list[list[float]]:
    """Return loss and gradient norm of two steps, and of the second again from a checkpoint written meanwhile."""
    taken = [trainer.step(samples(), GrpoSettings())]
    pending = PendingCheckpoint(run, 1, trainer, {"logs": {}}, load_tokenizer(WEIGHTS), keep=2)
    taken.append(trainer.step(samples(seed=2), GrpoSettings()))
    pending.finish()
    restore_trainer(last_checkpoint(run), trainer)
    taken.append(trainer.step(samples(seed=2), GrpoSettings()))
    return [[step.loss, step.gradient_norm] for step in taken]


def held_in_whole(trainer: Trainer) -> int:
    tensors = [*trainer.policy.parameters(), *trainer.policy.buffers()]
    assert not any(one.is_meta for one in tensors)
    return sum(one.nbytes for one in tensors if not isinstance(one, DTensor))


def loaded_by(rank: int, load: Callable[..., Any]) -> Callable[..., Any]:
    def watched(folder: Path, **options: Any) -> Any:
        model = load(folder, **options)
        assert all(one.is_meta == (rank > 0) for one in model.parameters())
        return model

    return watched


def failed_then_taken(trainer: Trainer) -> list[float] | None:
    """Return loss and gradient norm of a step behind one of which a later round could not be collated; on rank 0."""
    if not trainer.ranks.is_rank_zero:
        with pytest.raises(ShareNotMade, match=r"share [1-9]\d* of task `step`"):
            trainer.follow()
        trainer.follow()
        return None
    with pytest.raises(PackingError, match="on_policy"):
        trainer.step(half_marked(samples()), GrpoSettings())
    taken = trainer.step(samples(), GrpoSettings())
    return [taken.loss, taken.gradient_norm]


def work(out: Path) -> None:
    dist.init_process_group("gloo")
    made = recipe()
    ranks = DistributedContext(made.compute)
    trainer_module.load_model = loaded_by(ranks.rank, load_model)
    trainer = Trainer(WEIGHTS, made, ranks)
    assert held_in_whole(trainer) < 1000  # the frequencies of rotary positions
    if ranks.is_rank_zero:
        figures = two_steps(trainer, out / "run")
        ranks.close()
        (out / "steps.json").write_text(json.dumps(figures))
    else:
        trainer.follow()
        ranks.close()
    narrow = recipe(packing={"micro_batch_tokens": 40})
    ranks = DistributedContext(narrow.compute)
    taken = failed_then_taken(Trainer(WEIGHTS, narrow, ranks))
    ranks.close()
    if taken is not None:
        (out / "failed.json").write_text(json.dumps(taken))
    dist.destroy_process_group()


def test_two_ranks_take_the_steps_of_one(tmp_path: Path) -> None:
    run_on_ranks(["-m", __name__, str(tmp_path)])
    first, second, again = json.loads((tmp_path / "steps.json").read_text())
    assert again == second  # bit by bit from the checkpoint, which was written meanwhile
    for taken, alone in zip((first, second), two_steps(solo(), tmp_path / "alone"), strict=False):
        assert taken == pytest.approx(alone, rel=1e-4)
    narrow = solo(packing={"micro_batch_tokens": 40}).step(samples(), GrpoSettings())
    after_failure = json.loads((tmp_path / "failed.json").read_text())
    assert after_failure == pytest.approx([narrow.loss, narrow.gradient_norm], rel=1e-4)


if __name__ == "__main__":
    work(Path(sys.argv[1]))
    end_process(0)
