"""Known defects planted in copies of good rows, to count how many of them a recipe's filters catch.

Defects are worded as real sets have them, not as the filters look for them.
"""

VERSION = "planting@2"
"""Changed whenever the same rows could give other planted ones."""
