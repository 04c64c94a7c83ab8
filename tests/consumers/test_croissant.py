"""mlcroissant reads every table of a published set by its croissant.json; skipped where it is not laid."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.consumers.environments import environment_of, missing
from tests.curation.publish.cards.test_croissant import written

READ = """
import json, sys, mlcroissant
tables = mlcroissant.Dataset(jsonld=sys.argv[1])
text = lambda value: value.decode() if isinstance(value, bytes) else value
print(json.dumps({one.id: [text(row.get(f"{one.id}/id")) for row in tables.records(one.id)]
                  for one in tables.metadata.record_sets}))
"""


def read(path: Path) -> dict[str, list[str | None]]:
    """The ids of each table's rows, as mlcroissant reads them."""
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, env=environment_of("croissant"), capture_output=True, text=True, check=True)
    tables: dict[str, list[str | None]] = json.loads(done.stdout)
    return tables


@pytest.mark.slow
def test_mlcroissant_reads_every_table(tmp_path: Path) -> None:
    if why := missing("croissant"):
        pytest.skip(why)
    tables = read(written(tmp_path))
    assert {name: len(rows) for name, rows in tables.items()} == {"problems": 4, "dropped_rows": 1, "tests": 1}
    assert tables["problems"] == pl.read_parquet(tmp_path / "data")["id"].to_list()
