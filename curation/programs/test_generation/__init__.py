"""Test generation, where tests lack: inputs grown from the form that existing ones share (`growing`, by `grammar` and
`columns`) or by changing existing ones (`mutation`, within what `shapes` sees), within the `limits` that the statement
names; generator programs of a model (`generators`); which of the made tests are worth keeping (`selecting`).

Nothing here says that an input is valid: whoever calls runs the solutions on it, and they must agree.
"""

from curation.programs.test_generation.generators import GeneratorPrograms, programs_in
from curation.programs.test_generation.limits import StatedBound, stated_bounds
from curation.programs.test_generation.making import new_inputs
from curation.programs.test_generation.mutation import mutate_input
from curation.programs.test_generation.selecting import select_tests

VERSION = "test_generation@4"

__all__ = [
    "VERSION",
    "GeneratorPrograms",
    "StatedBound",
    "mutate_input",
    "new_inputs",
    "programs_in",
    "select_tests",
    "stated_bounds",
]
