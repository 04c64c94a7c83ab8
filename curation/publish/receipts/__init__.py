"""The receipt of a curated set: what its curation was worth, figure by figure, each with how it was computed.

figures.py is what a receipt holds and how it is in receipt.json, contents.py the digests and counts that a set's own
files give, page.py writes RECEIPT.md, comparing.py says in sentences where two receipts differ.
"""

from curation.publish.receipts.comparing import differing_figures
from curation.publish.receipts.contents import column_digests, file_digests, licence_figures
from curation.publish.receipts.figures import (
    FILE,
    PAGE,
    Figure,
    Needs,
    Receipt,
    as_figure,
    as_row,
    read_receipt,
    share_figure,
    wilson,
)
from curation.publish.receipts.page import MEASURED, page
from curation.publish.receipts.power import power_of_tests

__all__ = [
    "FILE",
    "MEASURED",
    "PAGE",
    "Figure",
    "Needs",
    "Receipt",
    "as_figure",
    "as_row",
    "column_digests",
    "differing_figures",
    "file_digests",
    "licence_figures",
    "page",
    "power_of_tests",
    "read_receipt",
    "share_figure",
    "wilson",
]
