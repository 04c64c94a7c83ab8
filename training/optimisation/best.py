"""Keep the model of a run's best evaluation, with its step and pass@1 in `best.json`.

Invariant: of equal evaluations the earliest is the best.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from training.optimisation.model import save_model
from training.optimisation.trainer import Trainer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BEST, MARK = "best", "best.json"


class HasPassRate(Protocol):
    """An evaluation's result."""

    @property
    def pass_rate(self) -> float: ...


def keep_best(run: Path, step: int, result: HasPassRate, trainer: Trainer, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Keep the model unless an earlier step's evaluation was as good; return whether it was."""
    path = run / BEST / MARK
    if path.exists():
        best = json.loads(path.read_text(encoding="utf-8"))
        if best["step"] < step and best["pass_rate"] >= result.pass_rate:
            return False
    said = json.dumps({"step": step, "pass_rate": result.pass_rate}) + "\n"
    save_model(
        trainer.model,
        tokenizer,
        run / BEST,
        asked=trainer.asked,
        extra_files={MARK: said},
        state=trainer.full_state_dict(),
    )
    return True
