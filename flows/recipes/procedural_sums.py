"""A generator of sums for `procedural.toml`: each level has more to add."""

from random import Random


def make(level: int, seed: int) -> dict[str, str]:
    """Return a sum of `level` numbers of two digits and its value; at level 1 of one, and a number of one digit."""
    random = Random(f"{level} {seed}")
    terms = [random.randrange(11, 90) for _ in range(level)]
    if level == 1:
        terms.append(random.randrange(2, 10))
    return {"statement": f"What is {' + '.join(map(str, terms))}?", "answer": str(sum(terms))}
