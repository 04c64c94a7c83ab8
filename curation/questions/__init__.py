"""Questions to a model other than solving: a `Vote` or a `Proposal` in `QUESTIONS`, or a user's own `Vote`."""

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
