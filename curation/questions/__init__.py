"""Questions to a model other than solving: a `Vote` or a `Proposal`, one file and one line of `QUESTIONS` each.

A user's own question is a `Vote` over rows, `use = "my_file.py:NAME"`.
"""

QUESTIONS = {
    "rewriting": "rewriting:REWRITING",
    "doubtful_rows": "doubtful_rows:DOUBTFUL_ROWS",
    "overlaps": "overlaps:OVERLAPS",
    "premises": "premises:PREMISES",
    "doubtful_verdicts": "doubtful_verdicts:DOUBTFUL_VERDICTS",
    "test_programs": "test_programs:TEST_PROGRAMS",
    "variants": "variants:VARIANTS",
}
"""By the name in a recipe: the module in this package, and the question in it."""
