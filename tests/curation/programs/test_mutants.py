"""Mutants: one mistake each, in programs of both languages."""

import ast

from curation.programs.mutants import mutants_of

PYTHON = """n = int(input())
best = 0
for i in range(1, n):
    if i % 3 < 2 and best <= i:
        best = max(best, i + 1)
    else:
        best += 1
        continue
print(best)
"""
CPP = """#include <vector>
using namespace std;
// 1 < 2
int main() {
    vector<long long> a(3);
    for (int i = 0; i < 3; i++) { if (a[i] <= 7 && i != 2) break; }
    return 0;
}
"""


def test_every_mutant_of_a_python_program_is_another_program() -> None:
    mutants = mutants_of(PYTHON, "python", 200, "seed")
    kinds = {mutant.kind for mutant in mutants}
    assert kinds == set("compare constant logic arithmetic extreme branch range statement overflow".split())
    trees = [ast.dump(ast.parse(mutant.code)) for mutant in mutants]
    assert len(set(trees)) == len(trees)
    assert ast.dump(ast.parse(PYTHON)) not in trees


def test_few_mutants_are_of_many_kinds_and_the_same_for_the_same_seed() -> None:
    few = mutants_of(PYTHON, "python", 6, "seed")
    assert len({mutant.kind for mutant in few}) == 6
    assert few == mutants_of(PYTHON, "python", 6, "seed")
    assert few != mutants_of(PYTHON, "python", 6, "other")


def test_mutants_of_a_cpp_program_change_one_place_and_no_template() -> None:
    codes = {mutant.code for mutant in mutants_of(CPP, "cpp", 200, "seed")}
    changes = {"i < 3": "i <= 3", "<= 7": "< 7", "&&": "||", "!=": "==", "long long": "int", "i = 0": "i = 1"}
    for old, new in (changes | {"break": "", "(a[i] <= 7 && i != 2)": "(false)"}).items():
        assert CPP.replace(old, new, 1) in codes, new
    assert all("// 1 < 2" in code and "#include <vector>" in code for code in codes)
    assert not any("vector<=" in code for code in codes)


def test_what_is_no_program_has_no_mutants() -> None:
    assert mutants_of("if if", "python", 9, "") == []
    assert mutants_of("", "cpp", 9, "") == []
