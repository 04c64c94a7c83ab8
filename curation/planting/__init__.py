"""Known defects planted in copies of good rows, so that what a recipe's filters catch can be counted.

rows.py spoils statements and references, copies.py makes duplicates, outputs.py spoils the tests of programs,
phrases.py has the words in each language. How a defect is worded follows how sets have it, not how the filters look
for it.
"""

from curation.planting.copies import changed
from curation.planting.outputs import CUT_INPUT, WRONG_OUTPUT, corrupt, spoil_tests
from curation.planting.rows import KINDS, PLANTED, OrderedRows, PlantedRows, plant_rows

VERSION = "planting@1"
"""Changed whenever the same rows could give other planted ones."""

__all__ = [
    "CUT_INPUT",
    "KINDS",
    "PLANTED",
    "VERSION",
    "WRONG_OUTPUT",
    "OrderedRows",
    "PlantedRows",
    "changed",
    "corrupt",
    "plant_rows",
    "spoil_tests",
]
