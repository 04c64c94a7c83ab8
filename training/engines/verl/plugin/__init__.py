"""Extend verl with our advantage, loss, reward, curriculum and group filter.

Invariant: only converts tensors for functions that the embedded engine uses too.
"""

from __future__ import annotations

from training.engines.verl.plugin import objective, rewards

__all__ = ["objective", "rewards"]
