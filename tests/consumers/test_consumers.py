"""Other trainers' own loaders and calls give the rewards that our judge gives; each is skipped where it is not laid."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.publish.export_formats import FORMATS, export_set
from tests.consumers.environments import TRAINERS, missing, rewards_inside
from tests.curation.publish.test_export_formats import MATH, OTHER, PROGRAM, curated

RESPONSES = [
    ("m1", "<think>Two halves.</think>So it is \\boxed{1}.", 1.0),
    ("m1", "It is \\boxed{2}", 0.0),
    ("m2", "#### 4", 1.0),
    ("c1", "```python\nprint(input())\n```", 1.0),
    ("c1", "```python\nprint(1)\n```", 0.0),
]


def test_every_trainer_but_open_r1_is_laid_out() -> None:
    assert set(FORMATS) - set(TRAINERS) == {"open-r1"}  # it needs a TRL of before 1.0, whose call is TRL's


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORMATS if name in TRAINERS])
def test_a_trainer_reads_the_set_and_rewards_as_we_judge(name: str, tmp_path: Path) -> None:
    if why := missing(name):
        pytest.skip(why)
    folder = curated(tmp_path / "curated", MATH, OTHER, PROGRAM)
    export = export_set(folder, name, tmp_path / "out").file.parent
    rewards = rewards_inside(name, export, [(problem, text) for problem, text, _ in RESPONSES], tmp_path)
    assert rewards == [reward for *_, reward in RESPONSES]
