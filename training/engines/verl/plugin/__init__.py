"""What verl imports in each of its processes: our advantage, loss, reward, curriculum and group filter, registered.

`VERL_USE_EXTERNAL_MODULES` names this package; verl imports it at the end of its own import. Everything here is run by
verl's environment and by nothing else.

Invariant: nothing is computed here that the embedded engine computes too; these modules turn verl's tensors into the
arguments of `training.objectives`, `training.rewards` and `training.rollouts.curriculum`, and back.
"""

from __future__ import annotations

from training.engines.verl.plugin import objective, rewards

__all__ = ["objective", "rewards"]
