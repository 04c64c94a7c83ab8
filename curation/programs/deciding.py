"""Decide which of a problem's tests to trust, make missing ones, and decide on problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from curation.config import CodeSettings
from curation.programs import execution_matrix, tests_agreement
from curation.programs.execution_matrix import Unit
from curation.programs.generation import generate_tests, vouching_of
from curation.programs.mutation import keeps_counts
from curation.programs.selecting import failing_solutions
from curation.programs.validation import Vouching, cut_inputs
from curation.records import DROPPED, JUDGING, TEST, DropReason
from curation.verify.programs.tools import Runner

GIVEN_TESTS = "tests"
"""Number of the sources' tests, of a problem or shard."""

POWER = pl.Schema(
    {
        "problem": pl.String(),
        "wrong": pl.Int32(),  # solutions known to be wrong
        "caught_given": pl.Int32(),  # of these, by the source's tests that stay
        "caught": pl.Int32(),  # … and by generated ones too
        "tried": pl.Int32(),  # inputs made
        "refused": pl.Int32(),  # of these, by a trusted validator, and so not run
        "made": pl.Int32(),  # of these, kept
        "reason": pl.String(),  # why nothing was made; empty if tests were
        "by": pl.String(),  # whose validator is trusted with the inputs: package, model, or empty
        "refused_given": pl.Int32(),  # given inputs that are not allowed
        "aside": pl.String(),  # why validators are not believed; null if all are
    }
)
"""Wrong solutions that a problem's tests catch, and the trusted validator."""

_MADE = pl.Schema({"problem": pl.String(), "test": pl.Int32()})

TABLES = {
    "tests": TEST,
    "judging": JUDGING,
    "runs": execution_matrix.MEASURED,
    "decisions": tests_agreement.TEST_DECISION,
    "power": POWER,
    "made": _MADE,
}
"""A problem's tests and runs, given and generated, with the decisions on them."""


def decide_tests(
    code: CodeSettings,
    seed: int,
    unit: Unit,
    runner: Runner,
    runs: pl.DataFrame,
    outputs: pl.DataFrame,
    limit: float,
    responses: Sequence[str],
) -> dict[str, pl.DataFrame]:
    """Decide on a problem's tests, and make missing ones; return its rows of `TABLES`.

    Args:
        runs, outputs, limit: of its execution matrix.
        responses: a model's, with programs that make and check tests.
    """
    given = _test_ids(unit.tests)
    vouching = vouching_of(unit, runner, responses)
    inputs = known_inputs(unit, vouching, tests_agreement.decide_tests(runs, given))
    decisions = tests_agreement.decide_tests(runs, given, inputs)
    tests = execution_matrix.corrected(unit.tests, decisions, outputs)
    generated = generate_tests(code, seed, unit, runner, runs, decisions, tests, limit, responses, vouching)
    new = pl.DataFrame(generated.tests, schema=TEST, orient="row")
    all_runs = pl.concat([runs, *generated.runs])
    before = failing_solutions(runs, decisions.filter(pl.col("decision") != "discard"))
    caught = frozenset[int]().union(*before.values())
    power = {
        "problem": unit.name,
        "wrong": runs.filter(~pl.col("right").fill_null(True))["solution"].n_unique(),
        "caught_given": len(caught),
        "caught": len(caught.union(solution for solution, tests in generated.caught.items() if tests)),
        "tried": generated.inputs,
        "refused": generated.refused,
        "made": new.height,
        "reason": generated.reason,
        "by": vouching.by,
        "refused_given": inputs.filter(~pl.col("allowed")).height,
        "aside": "; ".join(vouching.aside) or None,
    }
    judging = {**{name: unit.judging[name] for name in JUDGING}, "time_limit_s": limit}
    return {
        "tests": pl.concat([tests, new]),
        "judging": pl.DataFrame([judging], schema=JUDGING),
        "runs": all_runs,
        "decisions": tests_agreement.decide_tests(all_runs, given, inputs),
        "power": pl.DataFrame([power], schema=POWER),
        "made": _test_ids(new),
    }


def known_inputs(unit: Unit, vouching: Vouching, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return what is known of given inputs, as `tests_agreement.INPUT`.

    Without a trusted validator, truncated inputs are refused, and corrected ones with a wrong count are doubted.
    """
    texts = dict(unit.tests.select("index", "input").iter_rows())
    if vouching.by:
        known = {test: None if test in vouching.undecided else test not in vouching.refused for test in texts}
        rows = [(unit.name, test, allowed, vouching.refused.get(test)) for test, allowed in known.items()]
        return pl.DataFrame(rows, schema=tests_agreement.INPUT, orient="row")
    cut = cut_inputs(texts)
    whole = decisions.filter(~pl.col("test").is_in(list(cut))).sort("test")
    agreeing = [texts[test] for test in whole.filter(why="agrees")["test"]]
    corrected = whole.filter(decision="correct")["test"]
    doubted = [test for test in corrected if not keeps_counts(texts[test], agreeing)]
    refused = [(unit.name, test, False, words) for test, words in cut.items()]
    rows = [*refused, *((unit.name, test, None, None) for test in doubted)]
    return pl.DataFrame(rows, schema=tests_agreement.INPUT, orient="row")


def _test_ids(tests: pl.DataFrame) -> pl.DataFrame:
    return tests.select("problem", test="index")


def decide_problems(
    frame: pl.DataFrame,
    decided: Sequence[Mapping[str, pl.DataFrame]],
    whys: Mapping[str, str],
    code: CodeSettings,
    stage: str,
) -> tuple[dict[str, pl.DataFrame], dict[str, int]]:
    """Return the tables and notes of decided problems.

    Args:
        frame: `PROBLEM` rows.
        decided: each problem's `TABLES`.
        whys: why runs of a problem failed; without any run, the verifier failed on it.
        stage: that drops problems.
    """
    tables = {
        name: pl.concat([schema.to_frame(), *(problem[name] for problem in decided)]) for name, schema in TABLES.items()
    }
    checked = tables["judging"].filter(pl.col("checker").is_not_null())["problem"]
    made = tables.pop("made")
    problems = tests_agreement.decide_problems(tables["runs"], tables["decisions"], code, checked, made)
    kept, dropped = _split(frame, problems, tables["power"], whys, stage)
    tables["tests"] = tables["tests"].filter(pl.col("problem").is_in(kept["id"].to_list()))
    notes = _notes(problems, tables["power"])
    return {"kept": kept, "dropped": dropped, "problems": problems, **tables}, notes


def _split(
    frame: pl.DataFrame, problems: pl.DataFrame, power: pl.DataFrame, whys: Mapping[str, str], stage: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    without = power.filter(pl.col("reason") != "").select("problem", no_tests="reason")
    decided = problems.select("problem", "reason", "evidence", seen=True)
    joined = frame.join(decided, left_on="id", right_on="problem", how="left", maintain_order="left")
    joined = joined.join(without, left_on="id", right_on="problem", how="left", maintain_order="left")
    unseen = pl.col("seen").is_null()
    explained = (pl.col("reason") == DropReason.TOO_FEW_TESTS.value) & pl.col("no_tests").is_not_null()
    failure = pl.Series([whys[name] for name in joined["id"]], dtype=pl.String)
    joined = joined.with_columns(
        pl.when(unseen).then(pl.lit(DropReason.VERIFIER_FAILED.value)).otherwise("reason").alias("reason"),
        pl.when(unseen)
        .then(failure)
        .when(explained)
        .then(pl.format("{}; no tests could be made: {}", "evidence", "no_tests"))
        .otherwise("evidence")
        .alias("evidence"),
        stage=pl.lit(stage),
    )
    dropped = joined.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
    return joined.filter(pl.col("reason").is_null()).select(frame.columns), dropped


def _notes(problems: pl.DataFrame, power: pl.DataFrame) -> dict[str, int]:
    kept = problems.filter("keep")
    kept_power = power.join(kept, on="problem", how="semi")
    counts = (GIVEN_TESTS, "tests_kept", "tests_corrected", "tests_discarded")
    of_power = ("wrong", "caught_given", "caught", "tried", "refused", "made")
    return {
        **{name: int(problems[name].sum()) for name in counts},
        "weakly_tested": int(kept["weakly_tested"].sum()),
        **{f"vouched_{by or 'none'}": kept_power.filter(by=by).height for by in ("package", "model", "")},
        "refused_given": int(power["refused_given"].sum()),
        "validators_aside": power["aside"].drop_nulls().len(),
        "made_unvouched": int(kept_power.filter(by="")["made"].sum()),
        **{f"power_{name}": int(kept_power[name].sum()) for name in of_power},
    }
