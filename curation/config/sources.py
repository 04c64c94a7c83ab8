"""Sources and their column maps, also of code problems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from curation.config.base import Names, Settings, Url, names
from curation.licenses import UNKNOWN, checked_license
from curation.public_urls import public_url
from curation.storage.remote import FileKind, is_url, kind_of

License = Annotated[str, AfterValidator(checked_license)]
"""A licence as `curation.licenses` knows them."""

_LINK = re.compile(r"(?:https?|ftp|hf|s3|gs|gcs|az|abfss?|file)://\S+")
"""A URL that a card may link; not `javascript:`."""


class Pick(Settings):
    """The origin of a column, if a dotted path is not enough."""

    path: str | None = None
    """Dotted path into the row: `meta.level`, `messages.0.content`."""
    value: str | None = None
    """A constant instead of a path."""
    take: Literal["all", "hash", "boxed"] = "all"
    r"""`hash`: what follows the last `####` (GSM8K); `boxed`: inside the last \boxed{}."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.path is None) == (self.value is None):
            raise ValueError("give either `path` or `value`")
        return self


Column = Annotated[str | Pick, Field(union_mode="left_to_right")]


class ProblemColumns(Settings):
    """The columns of a source."""

    statement: Column = "problem"
    """The problem's text (`missing_statement`)."""
    answer: Column | None = None
    """The reference answer (`missing_answer`)."""
    choices: Column | None = None
    """A list of options, if they are not in the statement."""
    solution: Column | None = None
    """A worked solution."""
    lang: Column | None = None
    """ISO 639-1 code; `en` if missing."""
    license: Column | None = None
    """SPDX expression of each row; the source's if missing."""
    meta: tuple[str, ...] = ()
    """Dotted paths to keep in the column `meta`."""


class PriorAttempts(Settings):
    """A pass rate that came with the rows: another policy's share of attempts, or two counts."""

    policy: str = Field(min_length=1)
    """Name of the policy, the same in all sources."""
    rate: str
    """Path of the correct share, from 0 to 1, or of the number of correct attempts."""
    attempts: Annotated[int, Field(ge=1)] | str = 8
    """Number of attempts of a share, or path of the number of attempts, of which `rate` are correct."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths that are read."""
        return (self.rate, self.attempts) if isinstance(self.attempts, str) else (self.rate,)


class Join(Settings):
    """A second table whose rows are added to a source's; it is held in memory."""

    path: Url
    """File, glob, folder, URL or hub name, as a source's."""
    subset: Names | None = None
    """As a source's."""
    revision: str | None = None
    """As a source's."""
    on: Names
    """Path of the source's key, or a list of paths."""
    key: Names | None = None
    """The same in the second table; as `on` if missing."""
    columns: tuple[str, ...] = ()
    """Columns to take; all if empty."""
    into: str
    """Name of the new column, a list of matching rows."""
    most: int | None = Field(None, ge=1)
    """Max matching rows, the first ones."""

    @property
    def kind(self) -> FileKind:
        """Return the table's kind by its path's ending."""
        return kind_of(self.path)

    @model_validator(mode="after")
    def _keys_belong_together(self) -> Self:
        if self.key is not None and len(names(self.on)) != len(names(self.key)):
            raise ValueError("`on` and `key` must name the same number of columns")
        _require_files(self.kind, self.path)
        return self


class TestColumns(Settings):
    """The column of one part of a source's tests."""

    __test__ = False  # not a test class, whatever pytest thinks

    path: str | None = None
    """Path of a list of {input, output} objects, of an object with lists of inputs and outputs (also as JSON text or
    packed as in LiveCodeBench), of a list of asserts, or of a test program; the row itself if missing."""
    inputs: str = "input"
    """Name of the input in each object, or of their list."""
    outputs: str = "output"
    """Name of the expected output, or of their list."""
    origin: str = "given"
    """Name of this part: public, private or official."""


class SolutionColumns(Settings):
    """The columns of one part of a source's solutions."""

    path: str
    """Path of a program, a list of programs or objects, or an object of lists, also as JSON
    (`no_solution`)."""
    code: str | None = None
    """Name of the program in each object, or of their list."""
    language: str | None = None
    """Name of its language there; Python if missing."""
    languages: dict[str, Literal["python", "cpp"]] = Field({})
    """The source's names of languages, as in `3 = "python"`; others are left out."""
    right: bool | None = True
    """Whether all programs of this part are right."""
    verdict: str | None = None
    """Name of the verdict in each object, instead of `right`."""
    limit: int | None = Field(None, ge=1)
    """Max programs per problem."""


class CodeColumns(Settings):
    """The columns of a code source, after those of the statement."""

    parts: dict[str, str] = Field({})
    """Further parts of the statement, heading = path, appended in order."""
    examples: TestColumns | None = None
    """Examples, appended to the statement."""
    tests: tuple[TestColumns, ...] = Field(strict=False, min_length=1)
    """Columns of tests."""
    solutions: tuple[SolutionColumns, ...] = Field((), strict=False)
    """Columns of solutions."""
    time_limit: str | None = None
    """Path of the time limit: seconds, text such as `2 seconds`, or {seconds, nanos}."""
    memory_limit: str | None = None
    """Path of the memory limit: a number, or text with its unit."""
    memory_unit: Literal["bytes", "kb", "mb"] = "mb"
    """Unit of a memory limit that is a number."""
    checker: str | None = None
    """Path of a checker program (Python; `several_outputs`)."""
    function: str | None = None
    """Path of the function's name, also inside JSON text: `input_output.fn_name`; by the asserts if missing."""
    starter: str | None = None
    """Path of code that a solution begins with or its asserts use."""
    interactive: str | None = None
    """Path that is not empty if the problem is interactive."""
    input_file: tuple[str, ...] = ()
    """Paths that are set if a program reads or writes files."""
    pictures: str | None = None
    """Path of the number of pictures in the statement."""


REASONING_GYM = "reasoning_gym"
"""Package whose tasks are generators."""

_MADE_COLUMNS = ("level", "seed", "judged_by", "scorer", "reserved")


def _require_files(kind: str, path: str) -> None:
    """Refuse a URL instead of a folder or hub name."""
    if kind in ("dataset", "kattis") and is_url(path):
        raise ValueError(
            f"path = {public_url(path)!r} is a URL, which kinds `jsonl`, `parquet` and `csv` read; copy a folder of "
            f"kind `{kind}` to this machine, or name a hub set as in `owner/name`"
        )


class Source(Settings):
    """Where rows come from."""

    name: str = Field("", pattern=r"^[A-Za-z0-9._/-]+$")
    """Name in funnels, ids and cards; the file's if missing."""
    kind: Literal["jsonl", "parquet", "csv", "dataset", "kattis", "procedural", "python"] = "dataset"
    """`jsonl` (also a .json list), `parquet` and `csv`, also compressed; `dataset`: a Hugging Face name or folder;
    `kattis`: a folder of problem packages; `procedural`: rows of `generator`; `python`: rows of your own function,
    which runs with your rights. By the ending of `path` if missing."""
    path: Url
    """File, glob or folder relative to the recipe's, URL as `s3://bucket/rows-*.jsonl`, or hub name; for `procedural`
    the `generator`; for `python` the function, as `rows.py:rows`."""
    generator: str | None = Field(None, pattern=r"^.+:[A-Za-z_][A-Za-z0-9_]*$")
    """Generator of a procedural source, which runs with your rights: `reasoning_gym:TASK`, or `my_file.py:make`
    (docs/how-to/sources.md)."""
    levels: Annotated[int, Field(ge=1)] | tuple[dict[str, Any], ...] = 1
    """Number of levels, or a list of the generator's parameters, as `[{ min_terms = 2 }, { min_terms = 4 }]`."""
    rows_per_level: int = Field(100, ge=1)
    """Rows per level."""
    reserve_per_level: int = Field(0, ge=0)
    """Further rows per level (`reserved`), which refreshes draw."""
    first_seed: int = Field(0, ge=0)
    """Seed of the first row of each level; the next rows count on."""
    subset: Names | None = None
    """Configurations of a hub data set."""
    split: Names = "train"
    """Splits of a hub data set."""
    revision: str | None = None
    """Commit, branch or tag of a hub data set; pin a commit."""
    files: Names | None = None
    """Files of a hub data set instead of `subset`, as `all/train/*.parquet`."""
    where: str | None = None
    """SQL condition on the source's columns, as `problem_is_valid = 'Yes'`."""
    quota: Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, le=1)] | None = None
    """Draw rows at random, the same in every run: at most this number, or as 0.1 this share; all if missing."""
    join: Join | None = None
    """A second table to join."""
    license: License = UNKNOWN
    """Licence of the source, an SPDX expression, or `unknown`."""
    url: Url | None = None
    """Link to the source, for the card."""
    limit: int | None = Field(None, ge=1)
    """Read only the first rows."""
    weight: float = Field(1.0, gt=0)
    """Relative share of `export.size`."""
    bad_rows: int = Field(0, ge=0)
    """Max unreadable rows (`bad_row`), which are set aside in `stages/01-sources/quarantine`."""
    columns: ProblemColumns = ProblemColumns()
    """The column map. A column is a path, or `{ path | value, take }`."""
    prior_attempts: tuple[PriorAttempts, ...] = ()
    """Pass rates that came with the rows (docs/how-to/sources.md)."""
    code: CodeColumns | None = None
    """Tests, solutions and limits of a source of code problems."""
    processes: bool = False
    """Code: programs may start processes."""

    @model_validator(mode="before")
    @classmethod
    def _of_path(cls, table: Any) -> Any:
        if isinstance(table, Mapping) and table.get("kind") == "procedural":
            generator, columns = str(table.get("generator", "")), table.get("columns", {})
            if isinstance(columns, Mapping):
                columns = {"statement": "statement", "answer": "answer", **columns}
            module, _, task = generator.rpartition(":")
            named = {"name": task} if module == REASONING_GYM else {}
            table = {"path": generator, **named, **table, "columns": columns}
        if not isinstance(table, Mapping) or not isinstance(path := table.get("path"), str):
            return table
        table = {"kind": kind_of(path), **table}
        if "name" in table:
            return table
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(path).name.partition(".")[0]).strip("-")
        return {**table, "name": stem or "source"}

    @property
    def is_made(self) -> bool:
        """Return whether a generator makes the rows."""
        return self.kind == "procedural"

    @property
    def parameters(self) -> tuple[Mapping[str, Any], ...]:
        """Return the generator's parameters by level, from 1."""
        return ({},) * self.levels if isinstance(self.levels, int) else self.levels

    @property
    def joined(self) -> Source | None:
        """Return the second table as a source, or None."""
        if (join := self.join) is None:
            return None
        return Source(name=self.name, kind=join.kind, path=join.path, subset=join.subset, revision=join.revision)

    @property
    def domain(self) -> Literal["math", "code"]:
        """Return which verifier judges its attempts."""
        return "code" if self.kind == "kattis" or self.code is not None else "math"

    @field_validator("url")
    @classmethod
    def _is_link(cls, url: str | None) -> str | None:
        if url is not None and not _LINK.fullmatch(url):
            raise ValueError(f"{public_url(url)!r} cannot be a link on the card; write it as in https://host/page")
        return url

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.kind == "kattis" and self.code is not None:
            raise ValueError("a source of kind `kattis` has no `code` table: a package describes its own tests")
        if self.processes and self.domain != "code":
            raise ValueError("only a source of programs may set `processes`")
        if self.kind == "kattis" and (self.where or self.quota or self.join):
            raise ValueError("a source of kind `kattis` has no rows for `where`, `quota` or `join`")
        self._require_levels()
        if self.files is not None and (self.kind != "dataset" or self.subset is not None):
            raise ValueError("`files` belongs to the kind `dataset`, without a `subset`; elsewhere `path` names them")
        _require_files(self.kind, self.path)
        made = _MADE_COLUMNS if self.is_made else ()
        stated = (path for prior in self.prior_attempts for path in prior.paths)
        paths = dict.fromkeys((*self.columns.meta, *made, *stated))
        if len(paths) > len(self.columns.meta):  # set despite the frozen model, as the rows must keep them
            self.__dict__["columns"] = self.columns.model_copy(update={"meta": tuple(paths)})
        return self

    def _require_levels(self) -> None:
        if not self.is_made:
            names = ("generator", "levels", "rows_per_level", "reserve_per_level", "first_seed")
            fields = type(self).model_fields
            if own := next((name for name in names if getattr(self, name) != fields[name].default), None):
                raise ValueError(f'`{own}` belongs to a source of `kind = "procedural"`')
            return
        if self.generator is None or self.path != self.generator:
            raise ValueError("a source of kind `procedural` has a `generator`, as `my_file.py:make`, and no `path`")
        if self.code is not None:
            raise ValueError("a source of kind `procedural` makes problems with an answer; it has no `code` table")
        if self.levels == ():
            raise ValueError("`levels` is empty; give at least one level")
        if isinstance(self.levels, int) and self.generator.startswith(f"{REASONING_GYM}:") and self.levels > 1:
            raise ValueError("a task of reasoning_gym has its levels as parameters: `levels = [{ min_terms = 2 }]`")
