"""Translate a share of the kept problems with one model and check them with another.

Shards are asked in groups, so two local models rarely alternate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import polars as pl

from curation.config import TranslationSettings
from curation.prompts import Prompt
from curation.publish import export
from curation.publish.pages import render_template
from curation.publish.words import language_names
from curation.questions.proposals import refused_rows
from curation.records import AttemptKey, Domain, DropReason
from curation.storage.stages import Shard, finished_shards, read_shard, read_table
from curation.translation.invariants import kept_texts
from curation.translation.questions import MADE_BY, READING_VOTE, SUBJECTS, Tools
from curation.translation.questions import TRANSLATION as PROPOSAL
from curation.translation.rows import chosen, translated_rows, without_repeated
from flows.run import retries
from flows.run.policies import model_title
from flows.run.policy_session import PolicySession, failure_budget
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import (
    JUDGING_TABLE,
    TESTS_TABLE,
    Kind,
    Stage,
    StageResult,
    StageRun,
    rows_of,
    shard_counts,
)
from flows.stages.attempts import measure_rows
from flows.stages.judging import open_judge
from flows.stages.sources import SOURCES

GROUP_ROWS = 40_000  # kept problems translated together

STAGE = "translation"
_EVIDENCE = ("id", "target", "question", "tries", "text", "accepted", "why", "made")


def translate(job: StageRun) -> StageResult:
    """Translate, check and, if wanted, measure the drawn problems."""
    with ExitStack() as stack:
        work = _Work(job, stack)
        folder = job.open(f"{MADE_BY} {work.judged_by}", work.settings_text, job.problems)
        counts = shard_counts(job.problems.folder)
        shards = ((rows, index) for index, rows in enumerate(counts))
        make = partial(work.shards, folder.folder)
        total, drawn_rows = sum(counts), len(work.targets)
        return job.compute(folder, shards, make, total=total, rows_in=drawn_rows, group_rows=GROUP_ROWS)


class _Work:
    def __init__(self, job: StageRun, stack: ExitStack) -> None:
        assert job.recipe.translation is not None
        self.settings: TranslationSettings = job.recipe.translation
        self._job, self._stack = job, stack
        self._folder = job.problems.folder
        self.targets = drawn(job)
        self._sessions: dict[AttemptKey, PolicySession] = {}
        self._translator = self._session(self.settings.model, PROPOSAL.prompt, PROPOSAL.is_readable)
        self._reader = self._session(self.settings.reading, READING_VOTE.prompt, READING_VOTE.is_readable)
        part = job.run.parts[-1]
        solver = difficulty_stage(job.recipe, part).model if self.settings.measure else None
        self._solver = self._session(solver, None, lambda _: True) if solver else None
        self._judge = stack.enter_context(open_judge(job.run))
        self.judged_by = self._judge.version
        keys = [session.policy.key for session in (self._translator, self._reader, self._solver) if session is not None]
        recipe = job.recipe
        band = difficulty_stage(recipe, part).band.digest() if self.settings.measure else ""
        self.settings_text = f"{self.settings.digest()} {keys} {recipe.seed} {recipe.export.size} {band}"

    def _session(self, model: str, prompt: Prompt | None, is_readable: Callable[[str], bool]) -> PolicySession:
        """Return a model's session, one for all questions to recorded answers."""
        budget = failure_budget(self._job.run, len(self.targets))
        session = PolicySession(self._job.run, STAGE, model, budget, prompt, is_readable)
        if (same := self._sessions.get(session.policy.key)) is not None:
            return same
        self._sessions[session.policy.key] = self._stack.enter_context(session)
        return session

    def shards(self, place: Path, indices: Sequence[int]) -> list[Shard]:
        """Make a group's shards of the stage's folder, ``place``."""
        round_number = retries.last_round(place)
        frames = {index: read_shard(self._folder, "kept", index) for index in indices}
        originals = pl.concat([frame.with_columns(shard=pl.lit(index)) for index, frame in frames.items()])
        originals = originals.filter(pl.col("id").is_in(list(self.targets)))
        subjects = self._subjects(originals)
        for session in self._sessions.values():
            session.refused.clear()
        is_code = self._job.recipe.domain == Domain.CODE
        tools = Tools(None if is_code else self._judge, self._reader.ask)
        subjects, requests = PROPOSAL.select(subjects)
        proposals = PROPOSAL.answers(subjects, requests, self._translator.ask, tool=tools)
        by = self._translator.policy.key.policy
        read_by = self._reader.policy.key.policy
        rows = translated_rows(originals.drop("shard"), proposals, by, read_by)
        rows, proposals = without_repeated(rows, proposals, self._taken(place, indices))
        measured = None
        if self._solver is not None:
            measured = measure_rows(self._job.run, self._judge, self._solver, rows, "translation_of")
            rows = rows.with_columns(pass_rate_of=pl.lit(None, pl.String))
        is_refused = any(session.refused for session in (self._translator, self._reader))
        unmeasured = self._solver.refused if self._solver is not None else set()
        made = proposals.join(rows.select(id="translation_of", made="id"), on="id", how="left", maintain_order="left")
        shards = []
        for index in indices:
            own = pl.col("id").is_in(originals.filter(shard=index)["id"].implode())
            part = made.filter(own)
            kept = rows.filter(pl.col("translation_of").is_in(part["id"].implode()))
            dropped = refused_rows(originals.drop("shard"), part, STAGE, DropReason.UNTRANSLATED)
            tables = {"kept": kept, "dropped": dropped}
            tables["proposals"] = part.select(_EVIDENCE)
            if measured is not None:
                tables["decisions"] = measured.filter(pl.col("problem").is_in(kept["id"].implode()))
            failed = sum(name in unmeasured for name in kept["id"])
            failed += part.filter(~pl.col("accepted")).height if is_refused else 0
            notes = retries.failure_notes(failed, round_number, retries.REFUSED)
            shards.append(Shard(part.height, tables, notes=notes))
        return shards

    def _taken(self, place: Path, indices: Sequence[int]) -> set[str]:
        finished = [int(Path(mark["tables"]["kept"]["file"]).stem) for mark in finished_shards(place)]
        taken = [read_shard(place, "kept", index, ["id"])["id"] for index in finished if index not in indices]
        return set().union(read_table(self._folder, "kept", ["id"])["id"], *taken)

    def _subjects(self, originals: pl.DataFrame) -> pl.DataFrame:
        """Return what is translated, with code's unchangeable texts: given tests and starter."""
        unchanged: dict[str, list[str | None]] = {}
        if self._job.recipe.domain == Domain.CODE:
            for index in originals["shard"].unique().sort():
                for table, columns in ((TESTS_TABLE, ("input", "output")), (JUDGING_TABLE, ("starter",))):
                    groups = originals.filter(shard=index)["group"].implode()
                    rows = read_shard(SOURCES.folder_in(self._job.run), table, index, ["problem", *columns])
                    for name, *texts in rows.filter(pl.col("problem").is_in(groups)).iter_rows():
                        unchanged.setdefault(name, []).extend(texts)
        kept = [
            list(kept_texts(statement, unchanged.get(group, ())))
            for group, statement in originals.select("group", "statement").iter_rows()
        ]
        subjects = originals.with_row_index("at").with_columns(
            target=pl.Series([self.targets[name] for name in originals["id"]], dtype=pl.String),
            unchanged=pl.Series(kept, dtype=pl.List(pl.String)),
        )
        return subjects.select(SUBJECTS.names()).cast(SUBJECTS)


def drawn(job: StageRun) -> dict[str, str]:
    """Return the problems to translate, with target languages."""
    recipe, folder = job.recipe, job.problems.folder
    assert recipe.translation is not None
    columns = ["id", "group", "lang", "source", "weight"]
    rows = read_table(folder, "kept", columns)
    if rows.is_empty():
        return {}
    left_out = export.over_quota(rows, recipe.export.size, recipe.seed)
    return chosen(rows.join(left_out, on="id", how="anti"), recipe.translation, recipe.seed)


def translation_section(result: StageResult, settings: TranslationSettings) -> str:
    """Return the card's section on a finished stage's translations."""
    proposals = read_table(result.folder, "proposals")
    made = proposals.filter(pl.col("made").is_not_null())["target"].value_counts()
    languages = made.sort("count", "target", descending=[True, False]).iter_rows()
    whys = [(why.removeprefix("not, "), count) for why, count in PROPOSAL.notes(proposals).items() if why != "accepted"]
    return render_template(
        Path(__file__).with_name("translation.md.jinja"),
        drawn=result.manifest.rows_in,
        translated=result.manifest.kept,
        later=proposals.filter(pl.col("accepted") & (pl.col("tries") > 1)).height,
        measure=settings.measure,
        languages=[(language_names().get(code, code), count) for code, count in languages],
        refused=dict(sorted(whys, key=lambda item: (-item[1], item[0]))),
    ).rstrip("\n")


def _describe(run: Run) -> Iterator[str]:
    recipe, settings = run.recipe, run.recipe.translation
    assert settings is not None
    into = ", ".join(settings.languages)
    read = f"read by {model_title(recipe, settings.reading)}"
    rates = "measured" if settings.measure else "those of the originals"
    yield (
        f"translation: {settings.share:.3g} of the kept problems into {into} by "
        f"{model_title(recipe, settings.model)}, up to {PROPOSAL.tries} tries each, {read}; pass rates are {rates}"
    )


def _explain(_run: Run, folder: Path, problem: str) -> Iterator[str]:
    for row in rows_of(folder, "proposals", problem).iter_rows(named=True):
        tries = f"{row['tries']} {'try' if row['tries'] == 1 else 'tries'}"
        became = f"translated as {row['made']}" if row["accepted"] else f"not translated: {row['why']}"
        yield f"{row['target']}: {became} ({tries})"


TRANSLATION = Stage(
    name=STAGE,
    title="Translation",
    folder="stages/10-translation",
    work=translate,
    kind=Kind.ADDITION,
    enabled=lambda run: run.recipe.translation is not None,
    describe=_describe,
    explain=_explain,
    asks="translation.model",
)
