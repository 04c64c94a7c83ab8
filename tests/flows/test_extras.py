"""Optional extras: one that is not installed is one sentence, and a card does without its pictures."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from curation.extras import MODULES, has_extra, require_extra
from curation.records import ConfigError
from tests.flows.conftest import Tiny, goldilocks, refusal


def test_every_extra_is_declared() -> None:
    table = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert set(MODULES) <= set(table["project"]["optional-dependencies"])


def without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Hide a package from the look for it."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda one, *rest: None if one == name else find(one, *rest))


def test_a_missing_extra_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tiny_run: Tiny) -> None:
    require_extra("page", "the page")
    without(monkeypatch, "math_core")
    assert not has_extra("page")
    with pytest.raises(ConfigError, match=r"needs the extra `page`.*pip install 'goldilocks-rl\[page\]'"):
        require_extra("page", "the page")
    assert "the page needs the extra `page`" in refusal("page", tiny_run.folder)


@pytest.mark.slow
def test_a_card_without_plots_states_that_they_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_recipe: Path
) -> None:
    without(monkeypatch, "matplotlib")
    done = goldilocks("run", tiny_recipe, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    card = (tmp_path / "run" / "curated" / "README.md").read_text()
    assert "the extra `plots` was not installed" in card
    assert "plots/" not in card
    assert not (tmp_path / "run" / "curated" / "plots").exists()
