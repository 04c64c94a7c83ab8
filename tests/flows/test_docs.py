"""What is written down about commands, recipes and cards is what the program does."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from curation.config import Recipe
from curation.publish.export import CURATED
from curation.publish.export_formats import FORMATS
from curation.records import DropReason
from flows.cli.settings import settings_of
from flows.run.recipe import parse_recipe
from tests.flows.conftest import ROOT
from tests.reference_pages.__main__ import PAGES as REFERENCE
from tests.reference_pages.__main__ import commands
from tests.reference_pages.settings import everyday_keys
from training.recipe import TrainRecipe

COMMANDS = dict(commands())
DOCS = ROOT / "docs"
OWN_PROBLEMS = (DOCS / "how-to" / "own-problems.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
GENERATED = [DOCS / "reference" / name for name in REFERENCE]
CARD = ROOT / "data_cards" / "demo-math"


def typed(text: str) -> list[str]:
    """What a page shows to be typed: `goldilocks …` in code spans, table cells and console blocks."""
    blocks = re.findall(r"^```(?:console|sh|bash)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.lstrip("$ ") for block in blocks for line in block.splitlines()]
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [line for line in (*lines, *spans) if re.match(r"goldilocks \w", line)]


def parse(line: str) -> str:
    """The command of a shown line, whose arguments and options it must take."""
    _, *words = shlex.split(line.partition(" > ")[0], comments=True)
    name = "goldilocks"
    while words and any(known == f"{name} {words[0]}" or known.startswith(f"{name} {words[0]} ") for known in COMMANDS):
        name += f" {words.pop(0)}"
    assert name in COMMANDS, f"{line!r} names no command"
    COMMANDS[name].make_context(name, words, resilient_parsing=len(words) == 0)
    return name


def test_every_shown_command_exists_with_its_options() -> None:
    pages = [page for page in PAGES if page not in GENERATED]
    seen = [parse(line) for page in pages for line in typed(page.read_text(encoding="utf-8"))]
    assert set(seen) <= set(COMMANDS)


def test_the_help_of_export_names_every_format() -> None:
    (option,) = (one for one in COMMANDS["goldilocks export"].params if one.name == "form")
    named = set(re.findall(r"[\w-]+", str(getattr(option, "help", ""))))
    assert named == set(FORMATS)


def test_the_recipes_of_the_page_on_own_problems_are_recipes() -> None:
    math, code = (
        parse_recipe(tomllib.loads(text), "own-problems.md")
        for text in re.findall(r"^```toml[^\n]*\n(.*?)^```", OWN_PROBLEMS, re.MULTILINE | re.DOTALL)
    )
    assert math.stage2 is not None
    assert (math.domain, code.domain, math.unused_models, code.unused_models) == ("math", "code", [], [])


@pytest.mark.parametrize("name", REFERENCE)
def test_the_generated_reference_is_that_of_today(name: str) -> None:
    stored = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert stored == REFERENCE[name](), "write it anew: python -m tests.reference_pages"


def test_the_reference_has_every_setting_command_reason_and_column() -> None:
    text = {name: (DOCS / "reference" / name).read_text(encoding="utf-8") for name in REFERENCE}
    assert set(COMMANDS) == {name for name in COMMANDS if f"## `{name}`" in text["commands.md"]}
    assert all(f"| `{reason.value}` |" in text["drop-reasons.md"] for reason in DropReason)
    settings = [one for recipe in (Recipe, TrainRecipe) for one in settings_of(recipe) if one.kind != "table"]
    assert all(f"| `{one.key.rpartition('.')[2]}`" in text["settings.md"] for one in settings)
    assert all(f"| `{column}` |" in text["records.md"] for column in CURATED)


def test_the_everyday_settings_are_settings_and_at_most_forty() -> None:
    known = {re.sub(r"\(\w+\)", "", one.key) for recipe in (Recipe, TrainRecipe) for one in settings_of(recipe)}
    assert set(everyday_keys()) <= known
    assert len(everyday_keys()) <= 40


def test_every_page_stands_in_the_sites_contents() -> None:
    contents = (ROOT / ".zensical.toml").read_text(encoding="utf-8")
    listed = re.findall(r'= "([\w/-]+\.md)"', contents)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    targets = [(page.parent / path if path else page, anchor) for path, anchor in links]
    assert [target for target, _ in targets if not target.exists()] == []
    assert [(target, one) for target, one in targets if one and one not in anchors(target)] == []
    if page.is_relative_to(DOCS):  # the site has no more
        assert [target for target, _ in targets if not target.resolve().is_relative_to(DOCS)] == []


@pytest.mark.slow
def test_the_demo_card_is_what_the_demo_renders(demo_run: Path) -> None:
    by_shards = ("shard_rows = ", "- Uncertain rows by votes: ")  # a text that is in two shards is asked about twice

    def lines(card: Path) -> list[str]:
        return [line for line in card.read_text(encoding="utf-8").splitlines() if not line.startswith(by_shards)]

    assert lines(CARD / "README.md") == lines(demo_run / "curated" / "README.md")
