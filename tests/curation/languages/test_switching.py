"""Words of another language inside sentences."""

from __future__ import annotations

import pytest

from curation.languages.mixing import language_shares
from curation.languages.switching import foreign_letters
from tests.curation.tables import check_table

FRENCH = "Elle en avait deux, puis elle en achète trois, donc cela fait cinq pommes en tout pour la semaine."


def test_a_switch_inside_a_sentence_is_noticed() -> None:
    def switched(lang: str, text: str) -> str:
        shares = dict(language_shares(text))
        (other,) = [found for found, share in shares.items() if share > 0.1 and found != lang]
        assert sum(shares.values()) == pytest.approx(1)
        assert foreign_letters(text, lang)[other] >= 8
        return other

    check_table("switches", switched)


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("fr", f"{FRENCH} Le marketing et le software de New York sont online, cookies et iPhone."),
        ("de", "Die App Store Software läuft im Browser, der Download dauert 5 min bei 3 MB/s in San Francisco."),
        ("es", r"Sea $\text{if } x > 0$ la función y `for x in the_list: print(x)` el programa."),
        ("en", "Jose de la Cruz lives in Los Angeles and buys a croissant, two tacos and a pizza."),
        ("zh", "我们使用 Python 计算 Fibonacci 数列的前十项，速度是 5 km/h。"),
        ("xx", "whatever this may be, it has no file"),
    ],
)
def test_terms_names_formulas_and_code_are_nothing_foreign(lang: str, text: str) -> None:
    assert foreign_letters(text, lang) == {} or language_shares(text)[0] == (lang, 1.0)
