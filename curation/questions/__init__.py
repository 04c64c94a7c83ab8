"""What a model is asked other than to solve: questions of two shapes, `Vote` (votes.py) and `Proposal` (proposals.py).

A question is one file here and one line in `QUESTIONS`; `[questions.NAME]` of a recipe names the model that answers it.
A user's own question is a `Vote` over rows, named by `use = "my_file.py:NAME"` (`curation.plugins`).
`flows.stages.question` makes a stage of each.
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
