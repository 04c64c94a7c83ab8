"""Report a training run's progress in `goldilocks status`."""

from __future__ import annotations

import json
from pathlib import Path

from flows.run.progress import read_metrics

_SHOWN = (
    ("batch/pass_rate", "pass rate", ".3f"),
    ("reward/total", "reward", ".3f"),
    ("length/trained_mean", "tokens an attempt", ".0f"),
    ("policy/entropy", "entropy", ".3f"),
    ("age/token_mean", "age of tokens in versions", ".2f"),
)


def is_training(folder: Path) -> bool:
    """Return whether a folder holds a training run."""
    path = folder / "run.json"
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")).get("kind") == "training")
    except (OSError, ValueError, AttributeError):
        return False


def training_lines(folder: Path) -> list[str]:
    """Return a training run's status as lines."""
    from training.rollouts.attempt_log import count_attempts
    from training.rollouts.stall_monitor import STALLED

    recipe = json.loads((folder / "run.json").read_text(encoding="utf-8"))["recipe"]
    rows = read_metrics(folder)
    lines = [f"{recipe['name']}: {folder}", f"  step {rows[-1]['step'] if rows else 0} of {recipe['steps']}"]
    if rows:
        last = rows[-1]
        lines.append("  " + ", ".join(f"{name} {last[key]:{form}}" for key, name, form in _SHOWN if key in last))
    if counts := count_attempts(folder):
        lines.append(
            f"  attempts kept: {', '.join(f'{purpose} {count:,}' for purpose, count in sorted(counts.items()))}"
        )
    if (folder / "model" / "DONE.json").exists():
        lines.append(f"  the trained model: {folder / 'model'}")
    else:
        if (folder / STALLED).exists():
            lines.append(f"  ended: {json.loads((folder / STALLED).read_text(encoding='utf-8'))['message']}")
        lines.append(f"  not finished; `goldilocks train --resume {folder}` goes on")
    return lines
