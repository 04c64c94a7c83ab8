"""The languages' files: whole, typed, and all that a new language needs."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from curation.languages.names import LANGUAGES
from curation.languages.vocabulary import FOLDER, Language, languages, neighbours, read
from curation.records import ConfigError
from tests.places import ROOT

CODES = {path.stem for path in FOLDER.glob("*.toml")}


def test_every_language_has_a_file_with_every_field() -> None:
    assert {known.code for known in languages()} == CODES >= set(LANGUAGES)
    assert [known.position for known in languages()] == list(range(1, len(CODES) + 1))
    assert {known.code for known in neighbours()} == {path.stem for path in (FOLDER / "neighbours").glob("*.toml")}
    for known in (*languages(), *neighbours()):
        assert TypeAdapter(type(known)).validate_json(json.dumps(asdict(known)), strict=True) == known


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("position = 5\n", "", "de.toml: .* missing .*'position'"),
        ('joiners = ["und"]\n', "", "de.toml: .*Numerals.* missing .*'joiners'"),
        ('joiners = ["und"]', 'joiners = ["und"]\nzahlen = []', "de.toml: .*Numerals.* 'zahlen'"),
    ],
)
def test_a_file_with_another_field_is_refused(tmp_path: Path, before: str, after: str, complaint: str) -> None:
    text = (FOLDER / "de.toml").read_text()
    assert text.count(before) == 1
    broken = tmp_path / "de.toml"
    broken.write_text(text.replace(before, after))
    with pytest.raises(ConfigError, match=complaint):
        read(broken, Language)


def test_words_are_read_only_where_they_are_needed() -> None:
    script = """
import sys, curation
assert "tomllib" not in sys.modules
import curation.verify.worker_pool, curation.verify.answers
assert "curation.languages.vocabulary" in sys.modules
assert "pydantic" not in sys.modules, "the verifier's workers start without it"
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_new_language_is_a_new_file(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "data")
    text = (FOLDER / "es.toml").read_text()
    for before, after in {
        'name = "Spanish"\nposition = 3': f'name = "Polish"\nposition = {len(CODES) + 1}',
        '"cero", "uno", "dos", "tres"': '"zero", "jeden", "dwa", "trzy"',
        'yes = ["sí"': 'yes = ["tak"',
        r"proof = [": "proof = [\n  'udowodnij',",
        "proof_needles = [": 'proof_needles = ["udowodn",',
        '"enero"': '"stycznia"',
    }.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    (tmp_path / "data" / "pl.toml").write_text(text)
    script = f"""
from pathlib import Path
from curation.languages import vocabulary
vocabulary.FOLDER = Path({str(tmp_path / "data")!r})
import polars as pl
from curation.prompts.solving import BOXED
from curation.filters.statements import rules
from curation.filters.statements.rules import TAGS
from curation.verify.answers.words import parse_date, parse_boolean
assert TAGS[-1] == "pl" and "pl" in BOXED
assert "udowodn" in rules.PROOF_NEEDLES
assert pl.Series(["Udowodnij, że liczba jest parzysta."]).str.contains(rules.PROOF).item()
assert parse_boolean("tak") == "yes" and parse_date("3 stycznia 1999") == (1999, 1, 3)
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=300)
