"""Tests for problems that lack them: inputs of a model's generator programs (`generators`) and of changes to given
inputs (`mutation`), programs that are nearly right to hunt with (`mutants`), and which tests are kept (`selecting`).

Nothing here decides that an input is valid: the caller asks a validator and runs the solutions, which must agree.
"""

from curation.programs.test_generation.generators import (
    GeneratorPrograms,
    programs_in,
    validators_in,
    wrong_programs_in,
)
from curation.programs.test_generation.limits import StatedBound, stated_bounds
from curation.programs.test_generation.marks import marks_told, with_marks
from curation.programs.test_generation.mutants import Mutant, mutants_of
from curation.programs.test_generation.mutation import mutate_input
from curation.programs.test_generation.output_classes import OutputClasses, output_kind
from curation.programs.test_generation.selecting import TIMES, select_tests

VERSION = "test_generation@16"

__all__ = [
    "TIMES",
    "VERSION",
    "GeneratorPrograms",
    "Mutant",
    "OutputClasses",
    "StatedBound",
    "marks_told",
    "mutants_of",
    "mutate_input",
    "output_kind",
    "programs_in",
    "select_tests",
    "stated_bounds",
    "validators_in",
    "with_marks",
    "wrong_programs_in",
]
