"""Miniatures of the data sets that the shipped recipes name: rows of our own in each one's exact schema.

Columns, nesting and types are those of the sets' pages (`dataset_info` of their README, or of the converted parquet):
NuminaMath-1.5, DeepMath-103K, DeepScaleR, DAPO-Math-17k-Processed, Big-Math; CodeContests, Codeforces with its
submissions, TACO, APPS. Statements, tests and programs are made here; nothing of the sets is in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tests.places import ROOT

RECIPES = ROOT / "flows" / "recipes"
Row = Mapping[str, Any]

TEXT, INT, FLOAT, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TEXTS = pa.list_(TEXT)
PAIRS = pa.struct([("input", TEXTS), ("output", TEXTS)])
PAIR_LIST = pa.list_(pa.struct([("input", TEXT), ("output", TEXT)]))
PROGRAMS = pa.struct([("language", pa.list_(INT)), ("solution", TEXTS)])


@dataclass(frozen=True, slots=True)
class Mini:
    """A data set: its files' place inside, its columns with their types, and its rows.

    Example: ``Mini("data/train-00000-of-00001.parquet", {"problem": TEXT}, [{"problem": "What is 1 + 1?"}])``
    """

    file: str
    columns: Mapping[str, pa.DataType]
    rows: Sequence[Row]
    config: str | None = None
    """The configuration that the file belongs to, where the set's page lists several."""

    def write(self, folder: Path) -> None:
        """Write the file below a folder, and what the set's page says of its configurations."""
        place = folder / self.file
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix == ".jsonl":
            place.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        else:
            schema = pa.schema(list(self.columns.items()))
            pyarrow.parquet.write_table(pa.Table.from_pylist(list(self.rows), schema=schema), place)
        if self.config is not None:
            page = folder / "README.md"
            said = page.read_text() if page.exists() else "---\nconfigs:\n---\n"
            entry = f"- config_name: {self.config}\n  data_files:\n  - split: train\n    path: {self.file}\n"
            page.write_text(said.removesuffix("---\n") + entry + "---\n")


def _sum(first: int, second: int) -> tuple[str, str]:
    return f"Compute the sum of the numbers ${first}$ and ${second}$.", str(first + second)


OF_THE_BENCH = "How many whole numbers below 1000 are divisible by 7 or by 11 and not by both of them?", "208"
"""A problem of the miniature bench, which stands among those to train on too."""

NUMINA = [
    {
        "problem": problem, "solution": f"Adding gives {answer}.", "answer": answer, "problem_type": "Algebra",
        "question_type": kind, "problem_is_valid": valid, "solution_is_valid": "Yes", "source": "olympiads",
        "synthetic": False,
    }
    for (problem, answer), kind, valid in (
        (_sum(12, 31), "math-word-problem", "Yes"),
        (_sum(450, 37), "math-word-problem", "Incomplete"),
        (("Prove that $2$ is even.", "proof"), "proof", "Yes"),
        (("Which is prime? (A) 4 (B) 6 (C) 7 (D) 8", "C"), "MCQ", "Yes"),
        (("How many apples has Ann, who had 14 apples and ate 5 of them?", "9"), "math-word-problem", "Yes"),
        (OF_THE_BENCH, "math-word-problem", "Yes"),
    )
]  # fmt: skip
DEEPMATH = [
    {
        "question": "Evaluate the limit of $\\frac{3n+1}{n}$ as $n$ goes to infinity.", "final_answer": "3",
        "difficulty": 4.5, "topic": "Mathematics -> Calculus -> Limits",
        "r1_solution_1": "It is 3.", "r1_solution_2": "3", "r1_solution_3": "three",
    },
    {
        "question": "Determine the number of subsets of a set with $6$ elements.", "final_answer": "64",
        "difficulty": 3.0, "topic": "Mathematics -> Discrete Mathematics -> Combinatorics",
        "r1_solution_1": "64", "r1_solution_2": "64", "r1_solution_3": "64",
    },
]  # fmt: skip
DEEPSCALER = [
    {"problem": "What is the value of $2^{10}$?", "answer": "1024", "solution": "Double ten times."},
    {"problem": "Find the greatest common divisor of 84 and 126.", "answer": "42", "solution": "42 divides both."},
]
DAPO = [
    {
        "prompt": "How many primes lie below 20?", "solution": "8", "data_source": "math_dapo",
        "source_prompt": [{"content": "Solve. How many primes lie below 20?", "role": "user"}], "ability": "MATH",
        "reward_model": {"ground_truth": "8", "style": "rule-lighteval/MATH_v2"}, "extra_info": {"index": "9a"},
    }
]  # fmt: skip
BIG_MATH = [
    {
        "problem": "What is the product of the numbers 7 and 8?", "answer": "56", "source": "gsm8k",
        "domain": ["Mathematics -> Arithmetic"], "llama8b_solve_rate": 0.875,
    }
]  # fmt: skip

READ = "a, b = map(int, input().split())\n"
ADD, ADD_TOO = READ + "print(a + b)\n", "print(sum(map(int, input().split())))\n"
ADD_CPP = "#include <iostream>\nint main() { long long a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }\n"
MUL, MUL_TOO = READ + "print(a * b)\n", READ + "print(sum([a] * b) if b > 0 else -sum([a] * -b))\n"
SUB, SUB_TOO = READ + "print(a - b)\n", READ + "print(-(b - a))\n"
MAX, MAX_TOO = READ + "print(max(a, b))\n", READ + "print(a if a > b else b)\n"
INPUTS = ["1 2\n", "5 7\n", "10 20\n", "0 3\n", "8 8\n", "100 1\n"]


def _outputs(operation: Any) -> list[str]:
    return [f"{operation(*map(int, text.split()))}\n" for text in INPUTS]


CODE_CONTESTS = [
    {
        "name": "1_A. Sum", "description": "Read two integers of one line and print their sum.\n\nOutput\n\nThe sum.",
        "public_tests": {"input": INPUTS[:1], "output": _outputs(int.__add__)[:1]},
        "private_tests": {"input": INPUTS[1:], "output": _outputs(int.__add__)[1:]},
        "generated_tests": {"input": [], "output": []}, "source": 2, "difficulty": 7,
        "solutions": {"language": [3, 3, 2, 4], "solution": [ADD, ADD_TOO, ADD_CPP, "class A {}"]},
        "incorrect_solutions": {"language": [3], "solution": [SUB]},
        "cf_contest_id": 1, "cf_index": "A", "cf_points": 500.0, "cf_rating": 800, "cf_tags": ["math"],
        "is_description_translated": False, "untranslated_description": "",
        "time_limit": {"seconds": 2, "nanos": 0}, "memory_limit_bytes": 256_000_000,
        "input_file": "", "output_file": "",
    }
]  # fmt: skip
CODEFORCES = [
    {
        "id": "2/B", "aliases": None, "contest_id": "2", "contest_name": "Round 2", "contest_type": "CF",
        "contest_start": 1267117200, "contest_start_year": 2010, "index": "B", "time_limit": 2.0, "memory_limit": 64.0,
        "title": "Product", "description": "Two numbers are given. Multiply the first number with the second one.",
        "input_format": "Two integers in one line.", "output_format": "One integer, the product.",
        "interaction_format": None, "note": None, "examples": [{"input": "1 2\n", "output": "2\n"}],
        "editorial": None, "rating": 900, "tags": ["math"], "testset_size": 6,
        "official_tests": [
            {"input": one, "output": two} for one, two in zip(INPUTS, _outputs(int.__mul__), strict=True)
        ],
        "official_tests_complete": True, "input_mode": "stdio", "generated_checker": None, "executable": True,
        "generated_tests": 0,
    }
]  # fmt: skip


def _submission(number: int, source: str, language: str, verdict: str = "OK", problem: str = "2/B") -> dict[str, Any]:
    return {
        "submission_id": str(number), "source": source, "contestId": "2", "problem_index": "B",
        "programmingLanguage": language, "verdict": verdict, "testset": "TESTS", "passedTestCount": 6.0,
        "timeConsumedMillis": 30.0, "memoryConsumedBytes": 1024.0, "creationTimeSeconds": 1.3e9, "problem_id": problem,
    }  # fmt: skip


ACCEPTED = [
    {**_submission(1, MUL, "PyPy 3-64"), "og_source": MUL},
    {**_submission(2, MUL_TOO, "Python 3"), "og_source": MUL_TOO},
    {**_submission(3, "print 1", "Python 2"), "og_source": "print 1"},
    {**_submission(4, ADD, "Python 3", problem="9/Z"), "og_source": ADD},
]
REFUSED = [_submission(5, ADD, "Python 3", "WRONG_ANSWER")]
TACO = [
    {
        "question": "Subtract the second of two given whole numbers from the first one, and write the difference.",
        "solutions": json.dumps([SUB, SUB_TOO]), "starter_code": "",
        "input_output": json.dumps({"inputs": INPUTS, "outputs": _outputs(int.__sub__)}), "difficulty": "EASY",
        "raw_tags": "['math']", "name": None, "source": "codechef", "tags": "['Mathematics']", "skill_types": "[]",
        "url": "https://example.org/sub", "Expected Auxiliary Space": None, "time_limit": "2.0 seconds", "date": None,
        "picture_num": None, "memory_limit": "256.0 megabytes", "Expected Time Complexity": None,
    }
]  # fmt: skip
APPS = [
    {
        "id": 7, "question": "You get a pair of temperatures. Tell which one is higher by printing that temperature.",
        "solutions": json.dumps([MAX, MAX_TOO]),
        "input_output": json.dumps({"inputs": INPUTS, "outputs": _outputs(max)}),
        "difficulty": "introductory", "url": "https://example.org/max", "starter_code": "",
    }
]  # fmt: skip
APPS_TEST = [
    {
        **APPS[0], "id": 8, "solutions": "", "starter_code": "def f(x):\n",
        "question": "Write a function that takes a whole number and gives it back as it is.",
        "input_output": json.dumps({"fn_name": "f", "inputs": [[1]], "outputs": [[1]]}),
    }
]  # fmt: skip

_SUBMISSION = {name: FLOAT if isinstance(value, float) else TEXT for name, value in _submission(0, "", "").items()}
_TACO = dict.fromkeys(TACO[0], TEXT)

SETS: Mapping[str, Sequence[Mini]] = {
    "AI-MO/NuminaMath-1.5": [
        Mini("data/train-00000-of-00001.parquet", {**dict.fromkeys(NUMINA[0], TEXT), "synthetic": FLAG}, NUMINA)
    ],
    "zwhe99/DeepMath-103K": [
        Mini("data/train-00000-of-00001.parquet", {**dict.fromkeys(DEEPMATH[0], TEXT), "difficulty": FLOAT}, DEEPMATH)
    ],
    "agentica-org/DeepScaleR-Preview-Dataset": [Mini("deepscaler.jsonl", {}, DEEPSCALER)],
    "open-r1/DAPO-Math-17k-Processed": [
        Mini(
            "en/train-00000-of-00001.parquet",
            {
                "prompt": TEXT, "solution": TEXT, "data_source": TEXT,
                "source_prompt": pa.list_(pa.struct([("content", TEXT), ("role", TEXT)])), "ability": TEXT,
                "reward_model": pa.struct([("ground_truth", TEXT), ("style", TEXT)]),
                "extra_info": pa.struct([("index", TEXT)]),
            },
            DAPO,
            "en",
        )
    ],
    "SynthLabsAI/Big-Math-RL-Verified": [
        Mini(
            "data/train-00000-of-00001.parquet",
            {"problem": TEXT, "answer": TEXT, "source": TEXT, "domain": TEXTS, "llama8b_solve_rate": FLOAT},
            BIG_MATH,
        )
    ],
    "deepmind/code_contests": [
        Mini(
            "data/train-00000-of-00001.parquet",
            {
                "name": TEXT, "description": TEXT, "public_tests": PAIRS, "private_tests": PAIRS,
                "generated_tests": PAIRS, "source": INT, "difficulty": INT, "solutions": PROGRAMS,
                "incorrect_solutions": PROGRAMS, "cf_contest_id": INT, "cf_index": TEXT, "cf_points": pa.float32(),
                "cf_rating": pa.int32(), "cf_tags": TEXTS, "is_description_translated": FLAG,
                "untranslated_description": TEXT, "time_limit": pa.struct([("seconds", INT), ("nanos", INT)]),
                "memory_limit_bytes": INT, "input_file": TEXT, "output_file": TEXT,
            },
            CODE_CONTESTS,
        )
    ],
    "open-r1/codeforces": [
        Mini(
            "verifiable/train-00000-of-00001.parquet",
            {
                **dict.fromkeys(CODEFORCES[0], TEXT), "aliases": TEXTS, "contest_start": INT, "contest_start_year": INT,
                "time_limit": FLOAT, "memory_limit": FLOAT, "examples": PAIR_LIST, "rating": INT, "tags": TEXTS,
                "testset_size": INT, "official_tests": PAIR_LIST, "official_tests_complete": FLAG, "executable": FLAG,
                "generated_tests": INT,
            },
            CODEFORCES,
            "verifiable",
        )
    ],
    "open-r1/codeforces-submissions": [
        Mini("selected_accepted/train-00000-of-00001.parquet", {**_SUBMISSION, "og_source": TEXT}, ACCEPTED,
             "selected_accepted"),
        Mini("selected_incorrect/train-00000-of-00001.parquet", _SUBMISSION, REFUSED, "selected_incorrect"),
    ],
    "BAAI/TACO": [Mini("ALL/train-00000-of-00009.parquet", _TACO, TACO)],
    "codeparrot/apps": [Mini("train.jsonl", {}, APPS), Mini("test.jsonl", {}, APPS_TEST)],
    "HuggingFaceH4/aime_2024": [
        Mini("data/train-00000-of-00001.parquet", {"id": INT, "problem": TEXT, "answer": TEXT},
             [{"id": 60, "problem": OF_THE_BENCH[0], "answer": OF_THE_BENCH[1]}])
    ],
}  # fmt: skip
"""By the name on the hub."""


def local_recipe(name: str, folder: Path) -> Path:
    """Write a shipped recipe into a folder with its data sets beside it, and nothing else changed but what names them.

    Paths of the hub become those of the miniatures; commits go, and a bench that has no miniature is left out.
    """
    text = (RECIPES / f"{name}.toml").read_text()
    for path, files in SETS.items():
        if f'path = "{path}"' in text:
            for mini in files:
                mini.write(folder / path)
    sources, models, rest = text.partition("[models.")
    text = re.sub(r"(?m)^revision = .*\n", "", sources) + models + rest
    text = re.sub(r"(?m)^benches = .*$", 'benches = ["./aime24.toml"]', text)
    bench = (ROOT / "flows" / "benches" / "aime24.toml").read_text()
    bench = re.sub(r"(?m)^revision = .*\n", "", bench).replace('path = "Hugging', 'path = "./Hugging')
    (folder / "aime24.toml").write_text(bench)
    for mini in SETS["HuggingFaceH4/aime_2024"]:
        mini.write(folder / "HuggingFaceH4/aime_2024")
    (folder / "grader_7b.toml").write_text((RECIPES / "grader_7b.toml").read_text())
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path
