"""Score a student's rollouts with a frozen teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from curation.records import ConfigError
from training.config import PackingSettings
from training.optimisation.distributed import DistributedContext, RankTask
from training.optimisation.model import load_tokenizer
from training.optimisation.packing import TrainingSample
from training.optimisation.reference import ReferencePolicy
from training.optimisation.scoring import PolicyScorer


class Teacher:
    """A frozen policy that scores some samples of each minibatch; only rank 0 calls it."""

    def __init__(
        self, policy: ReferencePolicy, ranks: DistributedContext, packing: PackingSettings, temperature: float
    ) -> None:
        self.revision = policy.revision
        self._scorer = PolicyScorer(policy.policy, ranks, packing, temperature, "teacher")

    @property
    def tasks(self) -> Mapping[str, RankTask]:
        """Return the other ranks' tasks."""
        return self._scorer.tasks

    def scored(self, samples: Sequence[TrainingSample]) -> list[TrainingSample]:
        """Return the samples, with the teacher's log-probabilities for those with a teacher's prompt."""
        made = list(samples)
        asked = [place for place, one in enumerate(samples) if one.teacher_prompt_ids is not None]
        posed = [replace(samples[place], prompt_ids=samples[place].teacher_prompt_ids or ()) for place in asked]
        for place, scores in zip(asked, self._scorer.logprobs(posed) if posed else (), strict=True):
            made[place] = replace(samples[place], teacher_logprobs=scores.tolist())
        return made


def require_same_tokens(teacher: Path, student: Path) -> None:
    """Refuse a teacher with other tokens than the student's.

    Raises:
        ConfigError: the tokenizers differ.
    """
    own, other = load_tokenizer(student), load_tokenizer(teacher)
    if own.get_vocab() != other.get_vocab():
        raise ConfigError(
            f"teacher: the tokenizer in {teacher} has other tokens than that in {student}, so it cannot score the "
            "student's tokens; take a teacher of the same family"
        )
