"""What is written down about commands, recipes and cards is what the program does."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from curation.publish.export_formats import FORMATS
from flows.launch.training import is_training_recipe
from flows.run.recipe import load_recipe, parse_recipe
from tests.flows.cli.test_cli import commands
from tests.flows.conftest import ROOT

COMMANDS = dict(commands())
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(ROOT.glob("*.md"))
CARD = ROOT / "data_cards" / "demo-math"


def typed(text: str) -> list[str]:
    """What a page shows to be typed: `goldilocks …` in code spans, table cells and console blocks."""
    blocks = re.findall(r"^```(?:console|sh|bash)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.lstrip("$ ") for block in blocks for line in block.splitlines()]
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [line for line in (*lines, *spans) if re.match(r"goldilocks \w", line)]


def parse(line: str) -> str:
    """The command of a shown line, whose arguments and options it must take."""
    _, *words = shlex.split(line, comments=True)
    name = "goldilocks"
    while words and any(known == f"{name} {words[0]}" or known.startswith(f"{name} {words[0]} ") for known in COMMANDS):
        name += f" {words.pop(0)}"
    assert name in COMMANDS, f"{line!r} names no command"
    COMMANDS[name].make_context(name, words, resilient_parsing=len(words) == 0)
    return name


def test_every_shown_command_exists_with_its_options() -> None:
    seen = [parse(line) for page in PAGES for line in typed(page.read_text(encoding="utf-8"))]
    assert set(seen) == set(COMMANDS)


def table() -> dict[str, str]:
    """The README's table of commands: command → its row."""
    section = README.split("## Commands")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    return {parse(re.findall(r"`([^`]+)`", row)[0]): row for row in rows}


def test_the_table_has_a_row_for_every_command_and_no_other() -> None:
    assert list(table()) == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_row_names_every_option_and_no_other(command: str) -> None:
    options = {option for parameter in COMMANDS[command].params for option in parameter.opts if option[:2] == "--"}
    assert set(re.findall(r"(?<![\w-])--[a-z-]+", table()[command])) == options - {"--help"}


def test_the_help_of_export_and_the_table_name_every_format() -> None:
    (option,) = (one for one in COMMANDS["goldilocks export"].params if one.name == "form")
    named = set(re.findall(r"[\w-]+", str(getattr(option, "help", ""))))
    assert named == set(FORMATS)
    assert set(FORMATS) <= set(re.findall(r"[\w-]+", table()["goldilocks export"]))


def test_the_recipe_of_the_readme_is_a_recipe() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    recipe = parse_recipe(tomllib.loads(text), "README.md")
    assert recipe.stage2 is not None
    assert f"runs/{recipe.name} " in README


RECIPES = [path for path in sorted((ROOT / "flows" / "recipes").glob("*.toml")) if not is_training_recipe(path)]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_that_comes_along_is_a_recipe(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.name == path.stem.replace("_", "-")
    for source in recipe.sources:
        assert not Path(source.path).is_absolute()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_demo_card_is_what_the_demo_renders(demo_run: Path) -> None:
    def lines(card: Path) -> list[str]:
        return [line for line in card.read_text(encoding="utf-8").splitlines() if not line.startswith("shard_rows = ")]

    assert lines(CARD / "README.md") == lines(demo_run / "curated" / "README.md")


def test_the_demo_card_has_its_plots(demo_run: Path) -> None:
    plots = sorted(path.name for path in (demo_run / "curated" / "plots").iterdir())
    assert sorted(path.name for path in (CARD / "plots").iterdir()) == plots
