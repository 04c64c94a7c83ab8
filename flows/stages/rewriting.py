"""Hard multiple choice rewritten by a model: what the format filter would drop for needing its options is opened.

The rules are those of `curation.filters.multiple_choice.rewriting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from curation.filters import multiple_choice, statements
from curation.filters.multiple_choice.rewriting import ProposedRewriting, accept_rewriting, read_rewriting
from curation.prompts.rewriting import REWRITE
from curation.records import COUNTED_OUTCOMES, PROBLEM, Domain, DropReason, Outcome, PromptRequest
from curation.storage.stages import Shard, read_shard, read_table
from curation.verify.math_judge import Judge, JudgeTask, Response, Verdict
from flows.run.lookup import rows_of
from flows.run.policies import model_title
from flows.run.run_folder import Run
from flows.run.stage import MATH, Stage, StageResult, StageRun, refusal_retries
from flows.stages.asking import PolicySession
from flows.stages.judging import open_judge

REWRITING_VERSION = "rewriting@2"
"""Changed whenever the stage could accept another rewriting."""

REWRITTEN = pl.Schema(
    {
        "id": pl.String(),
        "source": pl.String(),
        "row": pl.Int64(),
        "accepted": pl.Boolean(),
        "why": pl.String(),  # why the policy was not asked, or why the rewriting is not believed; null where it is
        "statement": pl.String(),  # what the policy proposed; null where it proposed nothing
        "answer": pl.String(),  # the policy's own answer to it
    }
)
"""What became of each multiple choice that rules could not open."""

TWO_REFERENCES = "its copies name different options"
NOT_RESOLVED = "no option is named as the right one"


def rewrite_choices(job: StageRun) -> StageResult:
    """Open multiple choice where a model can; all rows go on.

    An opened one has no options any more; what it was stays in ``raw_statement`` and ``raw_answer``.
    """
    recipe, settings, problems = job.recipe, job.recipe.rewriting, job.problems.folder
    ambiguous_ids = _ambiguous_ids(problems)

    def is_readable(text: str) -> bool:
        return read_rewriting(text) is not None

    asking = PolicySession.of_stage(job, job.stage.name, settings.model, settings.max_failed, REWRITE, is_readable)
    with asking as session, open_judge(job.run) as judge:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index).with_row_index("_at")
            hard = hard_choices(frame, recipe.statements)
            outcome = _rewritten(frame.filter(pl.col("_at").is_in(list(hard))), hard, ambiguous_ids, session, judge)
            accepted = outcome.filter("accepted").select("_at", new="statement", right="right")
            refused = Counter(why.partition(":")[0] for why in outcome["why"].drop_nulls())
            notes = {"hard": outcome.height, "accepted": accepted.height, "asked": outcome.filter("asked").height}
            return Shard(
                frame.height,
                {"kept": _opened(frame, accepted), "rewritings": outcome.select(REWRITTEN.names())},
                notes=notes | {f"not, {why}": count for why, count in refused.items()},
            )

        version = " ".join((REWRITING_VERSION, REWRITE.version, statements.VERSION, judge.version))
        settings_text = (
            f"{session.policy.key} {settings.digest()} {recipe.statements.digest()} {recipe.verify.digest()}"
        )
        return session.shard_by_shard(job, job.open(version, settings_text, job.problems), work)


def hard_choices(
    problems: pl.DataFrame, settings: statements.StatementSettings
) -> dict[int, multiple_choice.ParsedChoice | None]:
    """Return by ``_at`` the parsed rows that the format filter drops because they need their options.

    A value is None where no single option is named as the right one. Rows are counted as in ``problems``, from 0.
    """
    choice_rows = statements.clean_statements(problems, settings).filter(multiple_choice.is_multiple_choice())
    judged = statements.apply_rules(problems.filter(pl.col("_at").is_in(choice_rows["_at"].implode())), settings)
    needed = choice_rows.filter(judged["reason"].eq_missing(pl.Series([DropReason.CHOICES_NEEDED.value])))[
        "_at"
    ].to_list()
    parts = dict(multiple_choice.parse_choices(choice_rows)) if needed else {}
    return {at: parts.get(at) for at in needed}


def _ambiguous_ids(problems: Path) -> frozenset[str]:
    """Return the ids whose copies have different references; the policy must not decide which of them is right."""
    rows = read_table(problems, "kept", ["id", "answer"])
    if rows.is_empty():
        return frozenset()
    num_references = pl.col("answer").str.strip_chars().str.to_uppercase().n_unique()
    return frozenset(rows.group_by("id").agg(num_references).filter(pl.col("answer") > 1)["id"])


def _rewritten(
    rows: pl.DataFrame,
    hard: Mapping[int, multiple_choice.ParsedChoice | None],
    ambiguous_ids: frozenset[str],
    session: PolicySession,
    judge: Judge,
) -> pl.DataFrame:
    """Return one row per hard multiple choice: `REWRITTEN`, its place, whether the policy was asked, the right
    option.
    """
    requests: dict[str, PromptRequest] = {}
    tasks: list[tuple[multiple_choice.ParsedChoice, ProposedRewriting | None, JudgeTask]] = []
    whys: dict[int, tuple[str, int | None]] = {}
    for at, name, lang in rows.select("_at", "id", "lang").iter_rows():
        choice = hard[at]
        if choice is not None and name not in ambiguous_ids:
            details = {"options": "\n".join(choice.options), "answer": choice.options[choice.index]}
            requests.setdefault(name, PromptRequest(name, choice.question, Domain.MATH, lang, details))
    responses = dict(session.ask(list(requests.values()), 1).select("problem", "text").iter_rows())
    for at, name, lang in rows.select("_at", "id", "lang").iter_rows():
        choice = hard[at]
        if choice is None or name in ambiguous_ids:
            whys[at] = (TWO_REFERENCES if choice is not None else NOT_RESOLVED), None
            continue
        rewriting = read_rewriting(responses.get(name))
        solved = Response(rewriting.answer if rewriting is not None else "", None)
        whys[at] = "", len(tasks)
        statement = rewriting.statement if rewriting is not None else None
        task = JudgeTask(name, choice.options[choice.index], lang, (solved,), statement=statement)
        tasks.append((choice, rewriting, task))
    verdicts = [result.verdicts[0] for result in judge.judge(task for _, _, task in tasks)]
    rewritten_rows = []
    for at, name, source, row in rows.select("_at", "id", "source", "row").iter_rows():
        why, number = whys[at]
        if number is None:
            rewritten_rows.append((at, False, name, source, row, False, why, None, None, None))
            continue
        choice, rewriting, _ = tasks[number]
        opened = _accepted(choice, rewriting, verdicts[number])
        is_accepted = isinstance(opened, multiple_choice.OpenQuestion)
        refused = opened.evidence if isinstance(opened, multiple_choice.Refusal) else None
        right = opened.answer if isinstance(opened, multiple_choice.OpenQuestion) else None
        proposed = (rewriting.statement, verdicts[number].answer) if rewriting is not None else (None, None)
        rewritten_rows.append((at, True, name, source, row, is_accepted, refused, *proposed, right))
    schema = {"_at": pl.UInt32(), "asked": pl.Boolean(), **REWRITTEN, "right": pl.String()}
    return pl.DataFrame(rewritten_rows, schema=schema, orient="row")


def _accepted(
    choice: multiple_choice.ParsedChoice, rewriting: ProposedRewriting | None, verdict: Verdict
) -> multiple_choice.OpenQuestion | multiple_choice.Refusal:
    """Apply the rules to a rewriting, by the verdict on the policy's own answer to it; return it or its refusal."""
    failed = verdict.outcome not in COUNTED_OUTCOMES  # the verifier's own failure is no verdict on the policy
    verified = failed or verdict.outcome is Outcome.CORRECT
    result = accept_rewriting(choice.question, choice.options, choice.index, rewriting, verified=verified)
    if failed and isinstance(result, multiple_choice.OpenQuestion):
        return multiple_choice.Refusal(DropReason.CHOICES_NEEDED, f"the verifier failed: {verdict.method}")
    return result


def _opened(problems: pl.DataFrame, accepted: pl.DataFrame) -> pl.DataFrame:
    """Return the shard with accepted rewritings in place; the original of an earlier rewriting stays."""
    joined = problems.join(accepted, on="_at", how="left", maintain_order="left")
    new = pl.col("new").is_not_null()
    changed = joined.with_columns(
        raw_statement=pl.when(new).then(pl.coalesce("raw_statement", "statement")).otherwise("raw_statement"),
        raw_answer=pl.when(new).then(pl.coalesce("raw_answer", "answer")).otherwise("raw_answer"),
        statement=pl.coalesce("new", "statement"),
        answer=pl.coalesce("right", "answer"),
        choices=pl.when(~new).then("choices"),
    )
    return changed.select(PROBLEM.names())


def _is_enabled(run: Run) -> bool:
    return run.recipe.rewriting.model is not None


def _describe(run: Run) -> Iterator[str]:
    yield f"{REWRITING.name}: {model_title(run.recipe, run.recipe.rewriting.model)}"


def _explain(_run: Run, folder: Path, problem: str) -> Iterator[str]:
    for row in rows_of(folder, "rewritings", problem).filter(~pl.col("accepted")).iter_rows(named=True):
        yield f"{'refused':<10} {row['why']}"


REWRITING = Stage(
    name="rewriting",
    title="Rewriting by a model",
    folder="stages/02-rewriting",
    work=rewrite_choices,
    domains=MATH,
    enabled=_is_enabled,
    asks="rewriting.model",
    describe=_describe,
    explain=_explain,
    retries=refusal_retries(),
)
