"""Register our advantage, loss, reward, curriculum and group filter with verl.

Invariant: only converts verl's tensors for the functions that the embedded engine uses too.
"""

from __future__ import annotations

from training.engines.verl.plugin import objective, rewards

__all__ = ["objective", "rewards"]
