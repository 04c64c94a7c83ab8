"""The share of problems to translate, the languages, and the model."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.mistakes import did_you_mean
from curation.config.policies import ModelName
from curation.languages.names import NAMES

LANGUAGES = ("en", "fr", "es", "it", "de", "zh", "ru")
"""The paper's languages: English, and the six targets of translation."""

TARGETS = LANGUAGES[1:]


class TranslationSettings(Settings):
    """A share of the problems, translated by a model and read by one; without this table nothing is translated."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model", "reader"})

    share: float = Field(0.1, gt=0, le=1)
    """Share of the English problems to translate, as in the paper."""
    languages: tuple[str, ...] = Field(TARGETS, min_length=1)
    """Target languages, ISO 639-1 codes. Paper: these six."""
    model: ModelName
    """The model that translates."""
    reader: ModelName | None = None
    """The model that checks each translation (`untranslated`); `model` if missing."""
    measure: bool = False
    """Measure the pass rates of translations."""

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
