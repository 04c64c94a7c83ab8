"""The stages in which a model is asked beside attempts, as bare functions: hard multiple choice, and premises.

Both are off unless the recipe names a policy. What a policy said lies in the run's attempt store under the version of
its prompt: a killed run asks for nothing twice, and a new threshold asks nobody. Nothing here decides anything: the
rules are those of `curation.choices.rewriting` and `curation.premises`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType

import polars as pl

from curation import attempts, choices, premises, statements
from curation.choices.rewriting import Rewriting, accept_rewriting, read_rewriting
from curation.config import PolicySettings
from curation.prompts import Prompt
from curation.prompts.premises import PREMISES
from curation.prompts.rewriting import REWRITE
from curation.records import ATTEMPT, JUDGED, PROBLEM, Domain, DropReason, Outcome, Prompted
from curation.store import Shard, Stage, read_shard, read_table
from curation.verify.judge import Judge, Judged, JudgeTask, Response
from flows.run.policies import open_policy
from flows.run.run_folder import Done, Run, inputs
from flows.stages.base import open_judge, shard_by_shard, split_rows

REWRITING_VERSION = "rewriting@1"
"""Changed whenever the stage could accept another rewriting."""

REWRITTEN = pl.Schema(
    {
        "id": pl.String(),
        "source": pl.String(),
        "row": pl.Int64(),
        "accepted": pl.Boolean(),
        "why": pl.String(),  # why nobody was asked, or why the rewriting is not believed; null where it is
        "statement": pl.String(),  # what the policy proposed; null where it proposed nothing
        "answer": pl.String(),  # the policy's own answer to it
    }
)
"""What became of each multiple choice that rules could not open."""

TWO_REFERENCES = "its copies name different options"
NOT_RESOLVED = "no option is named as the right one"


class Asking:
    """A policy asked with one prompt, its responses kept in the run's attempt store. A context manager.

    The policy is entered with the first question that the store cannot answer; leaving ends it and closes the store.
    """

    def __init__(self, run: Run, settings: PolicySettings, prompt: Prompt) -> None:
        self.policy = open_policy(settings, run.recipe_folder, prompt)
        self._store = attempts.AttemptStore(run.folder / "attempts", self.policy.key, self.policy.about)
        self._runner: asyncio.Runner | None = None
        self._entered = False

    def __enter__(self) -> Asking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._runner is not None:
                if self._entered:
                    self._runner.run(self.policy.__aexit__(kind, error, trace))
                self._runner.close()
            if kind is None:
                self._store.fold()
        finally:
            self._store.close()

    def ask(self, wanted: Sequence[Prompted], each: int) -> pl.DataFrame:
        """`ATTEMPT` rows of indices below ``each``, ordered by problem and index; fewer where the policy has fewer.

        Args:
            wanted: what is asked, each id once.
        """
        names = [asked.id for asked in wanted]
        lacking = self._store.missing(names, each)
        if lacking:
            questions = [(asked, index) for asked in wanted for index in lacking.get(asked.id, ())]
            if self._runner is None:
                self._runner = asyncio.Runner()
            self._runner.run(self._answer(questions))
            self._store.fold(names)
        return self._store.read(names, tuple(ATTEMPT)).filter(pl.col("index") < each)

    async def _answer(self, questions: Sequence[tuple[Prompted, int]]) -> None:
        if not self._entered:
            await self.policy.__aenter__()
            self._entered = True
        waiting = iter(questions)

        async def work() -> None:
            for asked, index in waiting:
                said = await self.policy.answer(asked, index)
                if said is not None:
                    self._store.add([(asked.id, index, said)])

        workers = [asyncio.create_task(work()) for _ in range(max(1, min(self.policy.in_flight, len(questions))))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


def rewrite_choices(run: Run, before: Done) -> Done:
    """Multiple choice that the format filter would drop for needing its options, opened where a model can.

    All rows go on. An opened one has no options any more; what it was stays in ``raw_statement`` and ``raw_answer``.
    """
    settings = run.recipe.rewriting
    assert settings.policy is not None
    torn = _two_references(before)
    with Asking(run, settings.policy, REWRITE) as asking, open_judge(run) as judge:
        version = " ".join((REWRITING_VERSION, REWRITE.version, statements.VERSION, judge.version))
        recipe = run.recipe
        made_by = f"{asking.policy.key} {settings.digest()} {recipe.statements.digest()} {recipe.verify.digest()}"

        def work(index: int) -> Shard:
            problems = read_shard(before.folder, "kept", index).with_row_index("_at")
            hard = hard_choices(problems, recipe.statements)
            outcome = _rewritten(problems.filter(pl.col("_at").is_in(list(hard))), hard, torn, asking, judge)
            accepted = outcome.filter("accepted").select("_at", new="statement", right="right")
            refused = Counter(why.partition(":")[0] for why in outcome["why"].drop_nulls())
            notes = {"hard": outcome.height, "accepted": accepted.height, "asked": outcome.filter("asked").height}
            kept = _opened(problems, accepted)
            return Shard(
                problems.height,
                {"kept": kept, "rewritings": outcome.select(REWRITTEN.names())},
                notes=notes | {f"not, {why}": count for why, count in refused.items()},
            )

        stage = Stage(run.where("rewriting"), "rewriting", version, made_by, inputs(before))
        return shard_by_shard(stage, before, work)


def hard_choices(problems: pl.DataFrame, settings: statements.StatementSettings) -> dict[int, choices.Parted | None]:
    """By ``_at``, the rows that the format filter drops because they need their options, taken apart.

    None where no single option is named as the right one. Rows are counted as in ``problems``, from 0.
    """
    seen = statements.cleaned(problems, settings).filter(choices.candidates())
    judged = statements.judge(problems.filter(pl.col("_at").is_in(seen["_at"].implode())), settings)
    needed = seen.filter(judged["reason"].eq_missing(pl.Series([DropReason.CHOICES_NEEDED.value])))["_at"].to_list()
    parts = dict(choices.taken_apart(seen)) if needed else {}
    return {at: parts.get(at) for at in needed}


def _two_references(before: Done) -> frozenset[str]:
    """Ids whose copies have different references; which of them is right is not for the policy to say."""
    rows = read_table(before.folder, "kept", ["id", "answer"])
    if rows.is_empty():
        return frozenset()
    said = pl.col("answer").str.strip_chars().str.to_uppercase().n_unique()
    return frozenset(rows.group_by("id").agg(said).filter(pl.col("answer") > 1)["id"])


def _rewritten(
    rows: pl.DataFrame,
    hard: Mapping[int, choices.Parted | None],
    torn: frozenset[str],
    asking: Asking,
    judge: Judge,
) -> pl.DataFrame:
    """One row per hard multiple choice: `REWRITTEN`, its place, whether the policy was asked, and the right option."""
    wanted: dict[str, Prompted] = {}
    tasks: list[tuple[choices.Parted, Rewriting | None, JudgeTask]] = []
    fates: dict[int, tuple[str, int | None]] = {}
    for at, name, lang in rows.select("_at", "id", "lang").iter_rows():
        parted = hard[at]
        if parted is not None and name not in torn:
            details = {"options": "\n".join(parted.options), "answer": parted.options[parted.index]}
            wanted.setdefault(name, Prompted(name, parted.question, Domain.MATH, lang, details))
    said = dict(asking.ask(list(wanted.values()), 1).select("problem", "text").iter_rows())
    for at, name, lang in rows.select("_at", "id", "lang").iter_rows():
        parted = hard[at]
        if parted is None or name in torn:
            fates[at] = (TWO_REFERENCES if parted is not None else NOT_RESOLVED), None
            continue
        rewriting = read_rewriting(said.get(name))
        solved = Response(rewriting.solved if rewriting is not None else "", None)
        fates[at] = "", len(tasks)
        tasks.append((parted, rewriting, JudgeTask(name, parted.options[parted.index], lang, (solved,))))
    verdicts = [result.verdicts[0] for result in judge.judge(task for _, _, task in tasks)]
    made = []
    for at, name, source, row in rows.select("_at", "id", "source", "row").iter_rows():
        why, number = fates[at]
        if number is None:
            made.append((at, False, name, source, row, False, why, None, None, None))
            continue
        parted, rewriting, _ = tasks[number]
        opened = _accepted(parted, rewriting, verdicts[number])
        fine = isinstance(opened, choices.Opened)
        refused = opened.evidence if isinstance(opened, choices.Refused) else None
        right = opened.answer if isinstance(opened, choices.Opened) else None
        proposed = (rewriting.statement, verdicts[number].answer) if rewriting is not None else (None, None)
        made.append((at, True, name, source, row, fine, refused, *proposed, right))
    schema = {"_at": pl.UInt32(), "asked": pl.Boolean(), **REWRITTEN, "right": pl.String()}
    return pl.DataFrame(made, schema=schema, orient="row")


def _accepted(parted: choices.Parted, rewriting: Rewriting | None, verdict: Judged) -> choices.Opened | choices.Refused:
    """What the rules say of a rewriting, by the verdict on the policy's own answer to it."""
    failed = verdict.outcome not in JUDGED  # the verifier's own failure is no verdict on the policy
    verified = failed or verdict.outcome is Outcome.CORRECT
    found = accept_rewriting(parted.question, parted.options, parted.index, rewriting, verified=verified)
    if failed and isinstance(found, choices.Opened):
        return choices.Refused(DropReason.CHOICES_NEEDED, f"the verifier failed: {verdict.how}")
    return found


def _opened(problems: pl.DataFrame, accepted: pl.DataFrame) -> pl.DataFrame:
    """The shard with accepted rewritings put in; the original of an earlier rewriting stays."""
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


def judge_premises(run: Run, before: Done) -> Done:
    """Problems of which enough votes of a model say that they cannot be answered as they stand leave."""
    settings = run.recipe.premises
    assert settings.policy is not None
    with Asking(run, settings.policy, PREMISES) as asking:

        def work(index: int) -> Shard:
            problems = read_shard(before.folder, "kept", index)
            columns = problems.unique("id", maintain_order=True).select("id", "statement", "domain", "lang")
            wanted = [Prompted(name, text, Domain(domain), lang) for name, text, domain, lang in columns.iter_rows()]
            tallies = premises.tally(problems["id"], asking.ask(wanted, settings.votes))
            decided = premises.decide(tallies, settings.threshold, settings.least)
            reasons = [None if keep else DropReason.FAULTY_PREMISES for keep in decided["keep"]]
            kept, dropped = split_rows(problems, "premises", reasons, decided["evidence"].to_list())
            few = tallies.filter(pl.col("readable") < settings.least).height
            notes = {"readable": int(tallies["readable"].sum()), "too_few_votes": few}
            return Shard(problems.height, {"kept": kept, "dropped": dropped, "votes": tallies}, notes=notes)

        made_by = f"{asking.policy.key} {settings.digest()}"
        version = f"{premises.VERSION} {PREMISES.version}"
        stage = Stage(run.where("premises"), "premises", version, made_by, inputs(before))
        return shard_by_shard(stage, before, work)
