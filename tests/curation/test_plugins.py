from __future__ import annotations

from pathlib import Path

import pytest

from curation.plugins import load_plugin
from curation.records import ConfigError


def test_an_object_of_a_file_in_the_recipes_folder(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    file = tmp_path / "own/votes.py"
    file.write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Vote:\n    word: str\nSOLVABLE = Vote('yes')\n"
    )
    first = load_plugin("own/votes.py:SOLVABLE", tmp_path)
    assert first.value.word == "yes"
    file.write_text(file.read_text() + "# changed\n")
    again = load_plugin("own/votes.py:SOLVABLE", tmp_path)
    assert again.digest != first.digest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("votes.py", "write my_file.py:name"),
        ("votes.py:not a name", "write my_file.py:name"),
        ("missing.py:x", "there is no file"),
        ("../outside.py:x", "outside of the recipe's folder"),
        ("votes.py:SOLVABEL", "does not define SOLVABEL; did you mean SOLVABLE?"),
        ("syntax.py:x", r"syntax\.py:2: SyntaxError"),
        ("raises.py:x", r"raises\.py:3: ZeroDivisionError"),
        ("no.such.module:x", "ModuleNotFoundError"),
        ("sys:argv", "has no file"),
    ],
)
def test_what_cannot_be_loaded_names_file_and_line(tmp_path: Path, name: str, message: str) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (tmp_path / "outside.py").write_text("x = 1\n")
    (folder / "votes.py").write_text("SOLVABLE = 1\n")
    (folder / "syntax.py").write_text("x = 1\nx = (\n")
    (folder / "raises.py").write_text("def f():\n    pass\ny = 1 / 0\n")
    with pytest.raises(ConfigError, match=message):
        load_plugin(name, folder)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (tmp_path / "outside.py").write_text("x = 1\n")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(ConfigError, match="outside"):
        load_plugin("link.py:x", folder)
