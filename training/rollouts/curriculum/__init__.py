"""The Goldilocks curriculum: which problems are trained on now, and what changes when learning slows.

`pools` sorts problems by their present pass rate; `triggers` looks at the recorded curves (reward,
length) and states what to change; `drawing` picks the problems of the next batch. All are pure functions of
numbers that the trainer has written down, and each returns its reason with its result.
"""
