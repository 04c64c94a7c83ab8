from pathlib import Path

import pytest

from curation.plugins import load_plugin
from curation.records import ConfigError
from tests.curation.tables import check_refused


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


def test_what_cannot_be_loaded_names_file_and_line(tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (tmp_path / "outside.py").write_text("x = 1\n")
    (folder / "votes.py").write_text("SOLVABLE = 1\n")
    (folder / "syntax.py").write_text("x = 1\nx = (\n")
    (folder / "raises.py").write_text("def f():\n    pass\ny = 1 / 0\n")
    check_refused("plugins refused", lambda name: load_plugin(name, folder), ConfigError)
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(ConfigError, match="outside"):
        load_plugin("link.py:x", folder)  # a link out of the folder
