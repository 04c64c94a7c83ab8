"""Filter verl's replay buffers by our decisions on groups and rollouts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from training.engines.verl.configuration import run_facts
from training.engines.verl.groups import JudgedRollout, the_ledger

TRAINING = "train"
"""verl's training partition."""


class _OurGroups(ReplayBuffer):
    def __init__(self, **arguments: Any) -> None:
        sizes = run_facts().recipe.collector
        groups = sizes.n_batch // sizes.group_size
        filters = {"filter_groups_metric": "reward", "sync_refill_failed_groups": True}
        arguments |= filters | {"train_batch_size": groups, "gen_batch_size": 1}
        super().__init__(**arguments)
        self._excluded: dict[str, set[str]] = {}
        self._means: dict[str, float] = {}
        self._known: set[str] = set()
        self._dropped: set[str] = set()
        self._now = 0

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        self._now = global_steps
        closed = the_ledger().after_step(global_steps - 1) if partition_id == TRAINING else {}
        batch, metrics = super().sample(global_steps=global_steps, partition_id=partition_id, batch_size=batch_size)
        return batch, {**metrics, **{f"goldilocks/{name}": value for name, value in closed.items()}}

    def _dapo_filtered_keys(self, partition_id: str) -> tuple[set[str], Counter[float]]:
        if partition_id != TRAINING:
            return set(), Counter()
        finished, ledger = self.finished_keys[partition_id], the_ledger()
        ledger.keep(finished)
        fresh = finished - self._known
        groups: dict[str, dict[str, JudgedRollout]] = defaultdict(dict)
        problems: dict[str, str] = {}
        keys = [key for key in self.partitions[partition_id] if _group(key) in fresh]
        if keys:
            data = tq.kv_batch_get(keys=keys, partition_id=partition_id, select_fields=["extra_fields", "extra_info"])
            for key, fields, row in zip(keys, list(data["extra_fields"]), list(data["extra_info"]), strict=True):
                values = _plain(fields)
                tag = self.partitions[partition_id][key]
                oldest, newest = tag.get("min_global_steps") or 0, tag.get("max_global_steps") or 0
                groups[_group(key)][key] = JudgedRollout.of(values["reward_extra_info"], oldest, newest)
                problems[_group(key)] = str(_plain(row)["id"])
        for name, rollouts in groups.items():
            decision = ledger.decide(name, problems[name], list(rollouts.values()), self._now)
            reasons = zip(rollouts, decision.exclusion_reasons, strict=True)
            self._excluded[name] = {key for key, reason in reasons if reason is not None}
            totals = [rollout.reward.total for rollout in rollouts.values() if not rollout.reward.excluded]
            self._means[name] = sum(totals) / len(totals) if totals else 0.0
            if decision.drop_reason is not None or len(self._excluded[name]) == len(rollouts):
                self._dropped.add(name)
        self._known = set(finished)
        self._dropped &= finished
        return set(self._dropped), Counter(self._means[name] for name in self._dropped)

    def _materialize_batch(self, partition_id: str, selected: list[str], snapshot: dict[str, dict[str, Any]]) -> Any:
        excluded = {key for name in selected for key in self._excluded.pop(name, ())}
        if excluded:
            tq.kv_clear(partition_id=partition_id, keys=sorted(excluded))
        kept = {key: tag for key, tag in snapshot.items() if key not in excluded}
        return super()._materialize_batch(partition_id, selected, kept)


class GroupBuffer(_OurGroups):
    """The buffer of synchronous training."""


class AsyncGroupBuffer(_OurGroups, ReplayBufferAsync):
    """The buffer of asynchronous training."""


def _group(key: str) -> str:
    """Return the group in a key: {group}_{rollout}_{part}."""
    return key.split("_")[0]


def _plain(value: Any) -> Mapping[str, Any]:
    plain: Mapping[str, Any] = getattr(value, "data", value)
    return plain
