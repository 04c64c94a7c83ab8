"""The prompt for making tests: a generator program and a validator program are asked for, in our own words.

The response is read by `curation.programs.test_generation.generators`; both programs run in the sandbox, and what they
make is believed only where the problem's solutions agree on it. `COUNT` names how many inputs the generator should
make.
"""

from __future__ import annotations

from curation.prompts.base import Prompt

COUNT = "count"
"""Detail of a `PromptRequest` that names how many inputs are wanted."""

SYSTEM = """\
You write tests for programming problems. A test is only useful if it is allowed by the problem's constraints and if a \
plausible but wrong or slow program fails on it."""

ASK = """\
Here is a programming problem. Programs for it read standard input and write standard output.

{statement}

Write two Python 3 programs, each in a code block of its own whose fence says python. Use the standard library only.

1. A generator. It reads one whole number k from standard input, 1 <= k <= {count}, and prints one complete input for \
the problem, the same one whenever it is given the same k (seed your random numbers with k). Spend the numbers well: \
the smallest input that is allowed; the largest sizes and the largest values; values that are all equal; sorted and \
reversed orders; inputs on which a greedy idea, an off-by-one error, an overflow of 32 bits or a slow algorithm \
fails; and some random ones of middling size. Keep every input below 200 kilobytes.

2. A validator. It reads an input of the problem from standard input and ends with exit code 0 if every rule of the \
statement is kept, else with exit code 1. Check each number against its limits.

Think first about what wrong programs for this problem look like, then write the two blocks and nothing behind them."""

TESTING = Prompt(
    "testing@1",
    SYSTEM,
    lambda request: ASK.replace("{count}", request.details.get(COUNT, "12")).replace("{statement}", request.statement),
)
