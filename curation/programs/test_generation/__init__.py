"""Test generation, where tests lack: inputs grown from the form that existing ones share (`growing`, by `grammar` and
`columns`) or by changing existing ones (`mutation`, within what `shapes` sees), within the `limits` that the statement
names and, where nothing will say whether they are valid, within the `relations` that all existing ones keep; generator
programs of a model (`generators`); which of the made tests are worth keeping (`selecting`).

Nothing here says that an input is valid: whoever calls asks a validator, and runs the solutions, which must agree.
"""

from curation.programs.test_generation.demands import is_unforeseen_refusal
from curation.programs.test_generation.doubts import RunInput, doubtful_inputs
from curation.programs.test_generation.forms import infer_form, inputs_breaking_the_statement, inputs_of_another_form
from curation.programs.test_generation.generators import (
    GeneratorPrograms,
    programs_in,
    validators_in,
    wrong_programs_in,
)
from curation.programs.test_generation.hints import Hints, find_hints
from curation.programs.test_generation.limits import StatedBound, stated_bounds
from curation.programs.test_generation.making import MUTATED, InputMaker, MadeInput, new_inputs
from curation.programs.test_generation.marks import marks_told, with_marks
from curation.programs.test_generation.mutants import Mutant, mutants_of
from curation.programs.test_generation.mutation import mutate_input
from curation.programs.test_generation.negatives import rule_breaking_inputs
from curation.programs.test_generation.output_classes import OutputClasses, output_kind
from curation.programs.test_generation.promised_outputs import exceeds, promised_most
from curation.programs.test_generation.selecting import TIMES, select_tests

VERSION = "test_generation@15"

__all__ = [
    "MUTATED",
    "TIMES",
    "VERSION",
    "GeneratorPrograms",
    "Hints",
    "InputMaker",
    "MadeInput",
    "Mutant",
    "OutputClasses",
    "RunInput",
    "StatedBound",
    "doubtful_inputs",
    "exceeds",
    "find_hints",
    "infer_form",
    "inputs_breaking_the_statement",
    "inputs_of_another_form",
    "is_unforeseen_refusal",
    "marks_told",
    "mutants_of",
    "mutate_input",
    "new_inputs",
    "output_kind",
    "programs_in",
    "promised_most",
    "rule_breaking_inputs",
    "select_tests",
    "stated_bounds",
    "validators_in",
    "with_marks",
    "wrong_programs_in",
]
