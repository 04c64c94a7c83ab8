"""Questions to a model besides solving: `QUESTIONS`, or a user's own `Vote`."""

QUESTIONS = {
    "rewriting": "rewriting:REWRITING",
    "doubtful_rows": "doubtful_rows:DOUBTFUL_ROWS",
    "overlaps": "overlaps:OVERLAPS",
    "premises": "premises:PREMISES",
    "doubtful_verdicts": "doubtful_verdicts:DOUBTFUL_VERDICTS",
    "test_programs": "test_programs:TEST_PROGRAMS",
    "variants": "variants:VARIANTS",
}
"""Module and question in this package, by a recipe's name."""
