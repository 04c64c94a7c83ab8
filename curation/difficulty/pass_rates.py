"""Computes pass rates (`pass_rates`) and decides by them (`decide`; paper, section 4.1).

Invariants: pure functions over frames; measuring never depends on thresholds; a reason holds only if every outcome of
failed verdicts leads to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import polars as pl

from curation.config import Band
from curation.difficulty.early_stopping import AttemptOutcome, OutcomeCounts, StoppingRule
from curation.policies.excerpt import excerpt, shortened
from curation.records import COUNTED_OUTCOMES, DECISION, PASS_RATE, DropReason, Outcome
from curation.verify.classes import keep_classes
from curation.verify.judge_worker import DOUBTFUL
from curation.verify.math_judge import Verdict

FAILED = (Outcome.TIMEOUT, Outcome.BROKEN)
"""Outcomes of the verifier's own failures."""

SHOWN_ANSWERS = 4
"""Max failed comparisons in a problem's evidence."""

SHOWN_CHARACTERS = 60
"""Max characters of each text in the evidence."""


def has_failed() -> pl.Expr:
    """Return whether a `VERDICT` is a verifier failure."""
    return pl.col("outcome").is_in([outcome.value for outcome in FAILED])


def is_doubtful() -> pl.Expr:
    """Return whether a `VERDICT` is wrong by an incomplete comparison."""
    return (pl.col("outcome") == Outcome.WRONG.value) & pl.col("method").str.ends_with(DOUBTFUL)


def failed_verdicts(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return problems with failed verdicts, and ``failures`` in words.

    Args:
        verdicts: counted rows of one policy and verifier.
    """
    comparisons = (
        verdicts.filter(has_failed())
        .sort("problem", "index")
        .group_by("problem", "reference", "answer", "outcome", "method", maintain_order=True)
        .agg("index")
    )
    rows = []
    for problem, reference, answer, outcome, method, indices in comparisons.iter_rows():
        against = f"against {excerpt(reference, SHOWN_CHARACTERS)}" if reference else "on the tests"
        shown, why = excerpt(answer or "", SHOWN_CHARACTERS), shortened(method, SHOWN_CHARACTERS)
        numbers = f"attempt{'s' if len(indices) > 1 else ''} {', '.join(map(str, indices))}"
        rows.append((problem, f"{numbers} answered {shown} {against}: {outcome} ({why})"))
    table = pl.DataFrame(rows, schema={"problem": pl.String, "failures": pl.String}, orient="row")
    more = pl.when(pl.len() > SHOWN_ANSWERS).then(pl.lit("; …")).otherwise(pl.lit(""))
    texts = pl.col("failures").head(SHOWN_ANSWERS).str.join("; ") + more
    return table.group_by("problem", maintain_order=True).agg(texts)


def replace_failed(verdicts: pl.DataFrame, new: Sequence[Verdict]) -> pl.DataFrame:
    """Return a problem's ordered verdicts with failed ones replaced."""
    columns = ("outcome", "answer_class", "method")
    old = list(verdicts.select(columns).iter_rows())
    classes = keep_classes(verdicts["answer_class"].to_list(), [verdict.answer_class for verdict in new])
    rows = [
        row if row[0] not in FAILED else (verdict.outcome.value, answer_class, verdict.method)
        for row, verdict, answer_class in zip(old, new, classes, strict=True)
    ]
    replaced = pl.DataFrame(rows, schema={name: verdicts.schema[name] for name in columns}, orient="row")
    return verdicts.with_columns(replaced)


def overrule(decisions: pl.DataFrame, where: pl.Expr, reason: DropReason, evidence: pl.Expr) -> pl.DataFrame:
    """Return `DECISION` rows, dropped for ``reason`` if ``where`` holds."""
    return decisions.with_columns(
        keep=pl.when(where).then(False).otherwise("keep"),
        reason=pl.when(where).then(pl.lit(reason.value)).otherwise("reason"),
        evidence=pl.when(where).then(evidence).otherwise("evidence"),
    )


def hold_refused(decisions: pl.DataFrame, refusals: pl.DataFrame) -> pl.DataFrame:
    """Return `DECISION` rows, problems in `REFUSAL` rows dropped as sampling_failed."""
    evidence = pl.format("attempt {} was refused ({}): {}", "index", "kind", "reason")
    first = refusals.sort("index").unique("problem", keep="first").select("problem", refused=evidence)
    joined = decisions.join(first, on="problem", how="left", maintain_order="left")
    return overrule(joined, pl.col("refused").is_not_null(), DropReason.SAMPLING_FAILED, pl.col("refused")).drop(
        "refused"
    )


def hold_reserved(decisions: pl.DataFrame, measured: pl.Series) -> pl.DataFrame:
    """Return `DECISION` rows, problems not ``measured`` dropped as reserved."""
    is_reserved = ~pl.col("problem").is_in(measured.implode())
    return overrule(decisions, is_reserved, DropReason.RESERVED, pl.lit("made for a later refresh"))


VERSION = "difficulty@5"

Z95 = 1.959963984540054
"""Two-sided 95 % normal quantile."""


def wilson(correct: pl.Expr, judged: pl.Expr, z: float = Z95) -> tuple[pl.Expr, pl.Expr]:
    """Return the (low, high) score interval of a share, inside [0, 1] (Wilson, JASA 22, 1927)."""
    n = judged.cast(pl.Float64)
    share = correct / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = (z / (1 + z * z / n)) * (share * (1 - share) / n + z * z / (4 * n * n)).sqrt()
    return (centre - half).clip(0.0, 1.0), (centre + half).clip(0.0, 1.0)


def pass_rates(
    problems: pl.Series,
    verdicts: pl.DataFrame,
    policy: str,
    rule: StoppingRule | None = None,
    stopped: Collection[str] = (),
) -> pl.DataFrame:
    """Return one `PASS_RATE` row per problem, in order.

    Args:
        verdicts: `VERDICT` rows of one policy and verifier.
        rule: where problems stop; without it all attempts count.
        stopped: problems that the sampler ended; more attempts may exist.
    """
    ends = _stopping_points(verdicts, rule)
    verdicts = _until(ends, verdicts, rule)
    counted = verdicts.group_by("problem").agg(
        pl.len().cast(pl.Int32).alias("attempts"),
        *((pl.col("outcome") == outcome).sum().cast(pl.Int32).alias(outcome.value) for outcome in Outcome),
    )
    frame = (
        problems.alias("problem")
        .to_frame()
        .join(counted, on="problem", how="left", maintain_order="left")
        .join(_top_wrong_answers(verdicts), on="problem", how="left", maintain_order="left")
        .join(ends, on="problem", how="left", maintain_order="left")
    )
    zeros = ["attempts", "top_wrong_votes", *(outcome.value for outcome in Outcome)]
    planned = rule.band.attempts if rule is not None else 0
    skipped = pl.when("settled").then(planned - pl.col("asked")).when(~pl.col("problem").is_in(list(stopped))).then(0)
    failed = pl.col("timeout") + pl.col("broken")
    low, _ = wilson(pl.col("correct"), pl.col("judged") + failed)
    _, high = wilson(pl.col("correct") + failed, pl.col("judged") + failed)
    return (
        frame.with_columns(pl.col(zeros).fill_null(0).cast(pl.Int32), pl.lit(policy).alias("policy"))
        .with_columns(
            pl.sum_horizontal(outcome.value for outcome in COUNTED_OUTCOMES).cast(pl.Int32).alias("judged"),
            (skipped if rule is not None else pl.lit(0)).alias("skipped"),
        )
        .with_columns(
            pl.when(pl.col("judged") > 0).then(pl.col("correct") / pl.col("judged")).alias("pass_rate"),
        )
        .with_columns(
            pl.when(pl.col("skipped") > 0).then("estimate").otherwise("pass_rate").alias("unbiased_pass_rate"),
        )
        .with_columns(
            pl.when(pl.col("judged") > 0).then(low).alias("low"), pl.when(pl.col("judged") > 0).then(high).alias("high")
        )
        .select(PASS_RATE.names())
        .cast(PASS_RATE)
    )


_STOPPING_POINTS = pl.Schema(
    {"problem": pl.String(), "asked": pl.Int32(), "settled": pl.Boolean(), "estimate": pl.Float64()}
)


def outcomes_by_problem(verdicts: pl.DataFrame) -> Iterator[tuple[str, list[AttemptOutcome]]]:
    """Yield each problem's ordered attempts, up to the first gap."""
    kinds: dict[tuple[str, int | None], AttemptOutcome] = {}
    grouped = verdicts.sort("problem", "index").group_by("problem", maintain_order=True)
    for problem, indices, outcomes, classes in grouped.agg("index", "outcome", "answer_class").iter_rows():
        so_far: list[AttemptOutcome] = []
        for position, (index, outcome, answer_class) in enumerate(zip(indices, outcomes, classes, strict=True)):
            if index != position:  # attempts after a gap were made too early to count
                break
            kind = outcome, answer_class
            so_far.append(kinds.setdefault(kind, (Outcome(outcome), answer_class)))
        yield problem, so_far


def _stopping_points(verdicts: pl.DataFrame, rule: StoppingRule | None) -> pl.DataFrame:
    if rule is None:
        return pl.DataFrame(schema=_STOPPING_POINTS)
    rows = []
    for problem, outcomes_so_far in outcomes_by_problem(verdicts):
        stopping_point = rule.of(problem).stopping_point(outcomes_so_far)
        rows.append((problem, stopping_point.requested, stopping_point.is_decided, stopping_point.pass_rate))
    return pl.DataFrame(rows, schema=_STOPPING_POINTS, orient="row")


def counted_verdicts(verdicts: pl.DataFrame, rule: StoppingRule | None) -> pl.DataFrame:
    """Return `VERDICT` rows up to each stop."""
    return _until(_stopping_points(verdicts, rule), verdicts, rule)


def _until(ends: pl.DataFrame, verdicts: pl.DataFrame, rule: StoppingRule | None) -> pl.DataFrame:
    if rule is None:
        return verdicts
    asked = verdicts.join(ends.select("problem", "asked"), on="problem", how="left", maintain_order="left")
    return asked.filter(pl.col("index") < pl.col("asked")).drop("asked")


def _top_wrong_answers(verdicts: pl.DataFrame) -> pl.DataFrame:
    return (
        verdicts.filter(pl.col("answer_class") > 0)
        .sort("problem", "index")
        .group_by("problem", "answer_class", maintain_order=True)
        .agg(pl.len().cast(pl.Int32).alias("top_wrong_votes"), pl.col("answer").first().alias("top_wrong_answer"))
        .sort("problem", "top_wrong_votes", "answer_class", descending=[False, True, False])
        .group_by("problem", maintain_order=True)
        .first()
        .select("problem", "top_wrong_answer", "top_wrong_votes")
    )


def disagreements_with_labels(verdicts: pl.DataFrame, attempts: pl.DataFrame) -> tuple[int, pl.DataFrame]:
    """Return the number of compared labels, and verdicts that differ."""
    labels = attempts.filter(pl.col("label").is_not_null()).select("problem", "index", "label")
    both = verdicts.join(labels, on=["problem", "index"], how="inner", maintain_order="left")
    compared = both.filter(pl.col("outcome").is_in([outcome.value for outcome in COUNTED_OUTCOMES]))
    differs = compared.filter((pl.col("outcome") == Outcome.CORRECT.value) != pl.col("label"))
    return compared.height, differs.select("problem", "index", "label", "outcome", "answer", "reference", "method")


def decide(
    rates: pl.DataFrame,
    band: Band,
    stage: str,
    rule: StoppingRule | None = None,
    failures: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return one `DECISION` row per `PASS_RATE` row, in order, with the first rule that drops.

    Args:
        rule: as for the pass rates.
        failures: `failed_verdicts`, as evidence.
    """
    by_counts = StoppingRule(band)
    foreseeing = rule if rule is not None and rule.foresees else None
    named = dict(failures.iter_rows()) if failures is not None else {}
    reasons, evidence = [], []
    columns = ("problem", "correct", "top_wrong_votes", "judged", "attempts", "skipped", "top_wrong_answer")
    for problem, correct, top_wrong, judged, attempts, skipped, rival in rates.select(columns).iter_rows():
        counts = OutcomeCounts(correct, top_wrong, judged, attempts, band.attempts - (skipped or 0))
        reason, why = _decision(problem, counts, skipped, rival, by_counts, foreseeing)
        if reason == DropReason.VERIFIER_FAILED and problem in named:
            why += f": {named[problem]}"
        reasons.append(reason)
        evidence.append(why)
    return (
        rates.with_columns(pl.Series("reason", reasons, pl.String), pl.Series("evidence", evidence, pl.String))
        .with_columns(pl.col("reason").is_null().alias("keep"), pl.lit(stage).alias("stage"))
        .select(DECISION.names())
        .cast(DECISION)
    )


def _decision(
    problem: str,
    counts: OutcomeCounts,
    skipped: int | None,
    rival: str | None,
    by_counts: StoppingRule,
    foreseeing: StoppingRule | None,
) -> tuple[str | None, str]:
    correct, judged, attempts = counts.correct, counts.judged, counts.attempts
    if skipped is None:
        return DropReason.TOO_FEW_ATTEMPTS, (
            f"the {attempts} attempts made under other settings do not decide it; `goldilocks run` samples it further"
        )
    open_question = (
        f"the verifier failed on {counts.failed} of {attempts} attempts, which could decide; of {judged} judged "
        f"{correct} are correct, {counts.top_wrong} agree on another"
    )
    if foreseeing is not None and skipped and not foreseeing.is_decided(counts):
        if counts.failed:
            return DropReason.VERIFIER_FAILED, open_question
        reason, chance = foreseeing.of(problem).likely_decision(counts)
        known = foreseeing.priors.get(problem)
        informants = f" with {known.informed_by}" if known is not None and known.informed_by else ""
        numbers = f"{correct} of {judged} correct, {counts.top_wrong} agree on another answer"
        return reason, f"{numbers}; foreseen at {chance:.3f}{informants}"
    band, reason = by_counts.band, by_counts.reason(correct, counts.top_wrong, judged, attempts)
    match reason:
        case DropReason.TOO_FEW_ATTEMPTS:
            return reason, f"{judged} attempts judged, {band.required_judged} wanted"
        case DropReason.VERIFIER_FAILED if judged >= band.required_judged:
            return reason, open_question
        case DropReason.VERIFIER_FAILED:
            failed = f"the verifier failed on {counts.failed} of {attempts} attempts"
            return reason, f"{failed}; {judged} judged, {band.required_judged} wanted"
        case DropReason.SUSPECTED_WRONG_LABEL:
            return reason, f"{counts.top_wrong} of {judged} agree on {str(rival)[:200]}, {correct} on the reference"
        case DropReason.NEVER_SOLVED:
            return reason, f"{correct} of {judged} correct, at least {band.min_correct} wanted"
        case DropReason.TOO_EASY:
            return reason, f"{correct} of {judged} correct, at most {by_counts.max_correct(judged)} wanted"
    return reason, f"{correct} of {judged} correct"
