"""The house rules: which files are where, which module imports which, and how large they grow."""

import ast
import gc
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.places import ROOT

PACKAGES = ("curation", "training", "flows")
TOP_LEVEL = {
    *PACKAGES,
    *"tests data_cards docs pyproject.toml Makefile README.md LICENSE CHANGELOG.md CONTRIBUTING.md AGENTS.md".split(),
}
SHARED_ROOMS = (
    "config difficulty.early_stopping difficulty.item_response difficulty.label_trust difficulty.label_votes "
    "difficulty.planning difficulty.priors difficulty.refresh_forecast difficulty.sampling embeddings errors extras "
    "filters.dedup.sketches filters.dedup.tokens http_server languages.identification languages.names "
    "languages.stripping languages.vocabulary licenses options plugins policies programs.deciding "
    "programs.execution_matrix programs.generation programs.hunting programs.selecting prompts public_urls "
    "publish.pages publish.withheld publish.words questions records response_formats scoring server_guard "
    "sources.files sources.kattis sources.kattis_statement sources.hub sources.procedural sources.rows sources.tables "
    "storage thinking verify"
).split()
"""Modules of curation that stages may import; every other one is a stage, named in the independence contract."""
FILE_LINES, FUNCTION_LINES = 700, 80
HEAVY = {"prefect", "torch", "transformers", "sympy", "datasets", "matplotlib", "vllm"}
# Spelled in pieces, so that this file keeps its own rules.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b")
FOREIGN_PLACES = re.compile(
    r"/wo" + r"rk/|/ro" + r"ot/|file:/" + r"/|\bpypi\.(?:python\.)?o" + r"rg|pythonho" + r"sted|registry\.n"
    r"pmjs|deb\.deb" + r"ian|download\.pyto" + r"rch"
)


def tracked() -> list[str]:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (ROOT / name).exists())


@cache
def modules() -> list[tuple[str, str, ast.Module]]:
    """Name, text and syntax tree of each Python file of the three packages; parsed once for all tests."""
    names = [name for name in tracked() if name.endswith(".py") and name.split("/")[0] in PACKAGES]
    texts = [(ROOT / name).read_text() for name in names]
    return [(name, text, ast.parse(text)) for name, text in zip(names, texts, strict=True)]


@pytest.fixture(scope="module", autouse=True)
def _trees_are_freed() -> Iterator[None]:
    """Collect no garbage while the syntax trees are there, which it would walk again and again."""
    gc.disable()
    yield
    modules.cache_clear()
    gc.enable()


def module_of(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(tree: ast.Module, known: set[str]) -> set[str]:
    """Return the modules of the house that a module imports, wherever in it."""
    targets = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            targets |= (inner & known) or {node.module}
        elif isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
    return targets & known


def test_the_top_level_holds_only_what_belongs_there() -> None:
    tops = {name.split("/")[0] for name in tracked()}
    assert {top for top in tops if not top.startswith(".")} <= TOP_LEVEL


def test_every_stage_is_kept_apart_by_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (apart,) = (contract["modules"] for contract in settings["contracts"] if contract["type"] == "independence")
    rooms = [*apart, *(f"curation.{room}" for room in SHARED_ROOMS)]
    homeless, lived_in = [], set()
    for name, _, _ in modules():
        module = module_of(name)
        home = next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)
        if home is not None:
            lived_in.add(home)
        elif name.startswith("curation/") and not name.endswith("/__init__.py") and name != "curation/api.py":
            homeless.append(name)
    assert homeless == []
    assert set(rooms) == lived_in


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports inside functions count too: they only hide a circle. The sandbox's box has one of its own."""
    names = {module_of(name): name for name, _, _ in modules()}
    graph = {module_of(name): imported(tree, set(names)) - {module_of(name)} for name, _, tree in modules()}
    for name in (name for name in names if ".sandbox.inside." in name):
        graph[name] = {other for other in graph[name] if ".sandbox.inside." not in other}
    TopologicalSorter(graph).prepare()  # raises an error that names a circle


def test_tests_lie_where_the_code_lies() -> None:
    rooms = {str(Path(name).parent) for name, _, _ in modules()}
    homes = {str(Path(name).parent) for name in tracked() if Path(name).name.startswith("test_")}
    mirrors = {home.removeprefix("tests/") for home in homes if home.split("/")[1:2] and home.split("/")[1] in PACKAGES}
    assert mirrors <= rooms


def test_vllm_is_imported_only_where_it_is_used() -> None:
    early = [
        f"{name}:{node.lineno}"
        for name, _, tree in modules()
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom) and re.search(r"\b(from|import) vllm\b", ast.unparse(node))
    ]
    assert early == []


def test_no_file_outgrows_one_sitting() -> None:
    long = {name: len(text.splitlines()) for name, text, _ in modules()}
    assert {name: lines for name, lines in long.items() if lines > FILE_LINES} == {}


def test_no_function_outgrows_one_page() -> None:
    lengths = {
        f"{name}::{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name, _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {place: lines for place, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def test_no_module_is_named_like_a_standard_one_or_a_drawer() -> None:
    taken = sys.stdlib_module_names | {"common", "helper", "helpers", "misc", "util", "utils"}
    assert [name for name, _, _ in modules() if not name.endswith("__.py") and Path(name).stem in taken] == []


def test_nothing_is_left_for_later() -> None:
    files = [name for name in tracked() if Path(name).suffix in {".py", ".toml", ".md", ".txt", ""}]
    assert [name for name in files if UNFINISHED.search((ROOT / name).read_text())] == []


def test_no_file_names_a_place_that_only_one_machine_has() -> None:
    texts = {name: data.decode() for name in tracked() if b"\0" not in (data := (ROOT / name).read_bytes())}
    assert [(name, hit[0]) for name, text in texts.items() if (hit := FOREIGN_PLACES.search(text))] == []


COMMANDS = sorted(f"flows.cli.{path.stem}" for path in (ROOT / "flows" / "cli").glob("[!_]*.py"))


@pytest.mark.parametrize(
    ("names", "heavy"), [(["curation"], HEAVY), (["flows.cli"], HEAVY), (COMMANDS, {"prefect", "torch", "vllm"})]
)
def test_a_light_import_stays_light(names: list[str], heavy: set[str]) -> None:
    code = f"import sys, {', '.join(names)}; print(*sorted(set(sys.modules) & {heavy}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
