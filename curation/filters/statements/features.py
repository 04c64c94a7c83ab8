"""What the classifier reads of a row besides n-grams: named features, each a yes or no of statement and answer.

They say little alone; a row is dropped by all of them together (`curation.filters.statements.scoring`). English words
stand here as in the rules; what other languages say is left to the n-grams.
"""

from __future__ import annotations

import polars as pl

from curation.filters.statements.figures import FIGURE
from curation.filters.statements.words import cheap
from curation.languages.vocabulary import one_of

_STATEMENT = pl.col("_statement")
_ANSWER = pl.col("_answer")
_LETTERS = pl.col("_letters")
_OPEN, _WORDS, _LIST, _PAIR = (pl.col(name) for name in ("_open", "_words", "_list", "_pair"))
_BLANKS = _STATEMENT.str.count_matches(r"_{2,}|[（(](?:\s|\\q?quad|\\ )*[)）]")
_QUESTIONS = _STATEMENT.str.count_matches(r"[?？]")


_MOST = r"(?:max\w*|largest|greatest|biggest|highest)\b"
_LEAST = r"(?:min\w*|smallest|least|lowest)\b"


def _says(pattern: str) -> pl.Expr:
    return _STATEMENT.str.contains(cheap(f"(?i){pattern}"))


_WANTS_SEVERAL = _says(
    r"\b(?:all|solutions?|solve|roots?|pairs?|triples?|tuples?|ordered|coordinates?|points?|separated|interval|range"
    r"|domain|values|zeros?|which|factors?|set|vector|matrix|form of)\b"
)
_ASKS_FOR_A_PAIR = (
    r"\b(?:find|determine|compute|evaluate|identify|calculate|what (?:are|is)|values? of)\b[^.?]{0,60}[\s$]and\b"
    r"[^.?]{1,24}[.?]?\s*$"
)

FEATURES: dict[str, pl.Expr] = {
    "statement_short": _LETTERS < 48,
    "statement_very_short": _LETTERS < 28,
    "asks_nothing": (_QUESTIONS == 0) & (_BLANKS == 0),
    "questions": _QUESTIONS >= 2,
    "blanks": _BLANKS >= 2,
    "extremes": _says(rf"\b{_MOST}.{{0,24}}\band\b.{{0,24}}\b{_LEAST}|\b{_LEAST}.{{0,24}}\band\b.{{0,24}}\b{_MOST}"),
    "asks_for_a_pair": _PAIR,
    "explains": _says(r"\b(?:explain|justify|discuss|describe|construct|sketch|draw|write down)\b"),
    "proves": _says(r"\b(?:prove|show that|verify that|with proof)\b"),
    "decides": _says(r"\b(?:does there|do there|is it (?:true|possible)|must there|for (?:which|what))\b"),
    "approximates": _says(r"\b(?:approximat\w*|asymptotic\w*|analytical|regimes?)\b"),
    "any_will_do": _says(
        r"\b(?:one of the possible|a possible|an example|one possible|equivalent (?:to|fractions?)|the same as)\b"
    ),
    "figure_named": _says(r"\b(?:figure|diagram|picture|graph|table|pattern|row|shown|below|above|this)\b"),
    "short_and_pointing": (_LETTERS < 60)
    & _says(r"\b(?:the (?:triangle|figure|graph|table|pattern|missing|last)|row|of [A-Z])\b"),
    "statement_damaged": _STATEMENT.str.contains(
        r"\\textbackslash|<[A-Z]|T ?N ?Y ?W ?R|\x0C|\\right\}|\\[)\]]\s*\\mid"
    ),
    "figure_code": _STATEMENT.str.contains(FIGURE, literal=True),
    "answer_long": _ANSWER.str.len_chars() > 48,
    "answer_very_long": _ANSWER.str.len_chars() > 120,
    "answer_list": _LIST,
    "list_not_asked_for": _LIST & ~_WANTS_SEVERAL,
    "pair_answered": _LIST & _PAIR,
    "answer_either": _OPEN.str.contains(rf"(?i)[\s$\d](?:{one_of(lambda lang: lang.statements.either_words)})[\s$\d]"),
    "answer_equations": _ANSWER.str.count_matches("=", literal=True) >= 2,
    "answer_equation": _ANSWER.str.contains("=", literal=True),
    "answer_compares": _ANSWER.str.contains(r"<|>|\\text(?:less|greater)|\\[lg]eq?\b"),
    "answer_sentence": _WORDS.str.contains(r"^\s*[A-Z][a-z]*\s+[a-z]{2,}"),
    "answer_begins_with_word": _WORDS.str.contains(r"^\W*[A-Za-zÀ-ÿ]{3,}"),
    "answer_words": _WORDS.str.contains(r"[A-Za-zÀ-ÿ]{2,}[\s,]+[A-Za-zÀ-ÿ]{2,}"),
    "answer_begins_with_han": _ANSWER.str.contains(r"^\p{Han}"),
    "answer_without_digits": _ANSWER.str.contains(r"\d").not_() & (_ANSWER.str.len_chars() > 3),
    "answer_formula": _ANSWER.str.contains("\\", literal=True),
    "answer_damaged": _ANSWER.str.contains(r"\\textbackslash|\\textasciitilde|#|\\underbrace|\\_|\$[+-]\$")
    | (_ANSWER.str.count_matches("{", literal=True) != _ANSWER.str.count_matches("}", literal=True)),
}  # fmt: skip
"""By name, in the order of the weights, of the columns that `prepared` adds."""


_RARE_WORDS = (
    "min", "smallest", "least", "lowest", "explain", "justif", "discuss", "describe", "construct", "sketch", "draw",
    "write down", "prove", "show that", "verify that", "with proof", "does there", "do there", "is it ", "must there",
    "for which", "for what", "approximat", "asymptotic", "analytical", "regime", "one of the possible", "a possible",
    "an example", "one possible", "equivalent to", "equivalent fraction", "the same as",
)  # fmt: skip
"""Literals without one of which none of the features below them in `PARTS` is there."""
_RARE = ("extremes", "explains", "proves", "decides", "approximates", "any_will_do")

PARTS: tuple[tuple[pl.Expr, tuple[str, ...]], ...] = (
    (_STATEMENT.str.contains_any(list(_RARE_WORDS), ascii_case_insensitive=True), _RARE),
    (_LETTERS < 60, ("short_and_pointing",)),
    (_LIST, ("list_not_asked_for", "pair_answered")),
)
"""Features of `FEATURES` that are read only where something holds without which they are not there."""


def prepared(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with statement and answer as the features read them: what several of them share is read once."""
    texts = rows.with_columns(
        _statement=pl.col("statement").fill_null(""), _answer=pl.col("answer").fill_null("").str.strip_chars()
    )
    # Han characters count double
    wide = texts["_statement"].str.len_bytes() != texts["_statement"].str.len_chars()
    han = pl.Series("_letters", texts["_statement"].str.len_chars())
    if wide.any():
        places = wide.arg_true()
        han = han.scatter(places, han[places] + texts["_statement"][places].str.count_matches(r"\p{Han}"))
    # the answer without what is inside brackets
    bare = _ANSWER.str.replace_all(r"\\(?:left|right|text|mathrm|mbox)\b", "").str.replace_all(
        r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|\d,\d{3}", " "
    )
    # a sentence around one formula says what the formula says; words are those outside formulas and commands
    said = _ANSWER.str.replace(r"^(?:The|There)\b[^$.]{0,60}\b(?:is|are|equals?|to)\s+(\$[^$]+\$)[\s.]*$", "${1}")
    words = said.str.replace_all(r"\$[^$]*\$|\\[a-zA-Z]+", " ")
    several = rf"(?i)[\s$](?:{one_of(lambda lang: lang.statements.several_joiners)})[\s$]"
    return texts.with_columns(han, _open=bare, _words=words, _pair=_says(_ASKS_FOR_A_PAIR)).with_columns(
        _list=_OPEN.str.contains(r"[,;，；、]\s*\S") | _OPEN.str.contains(several)
    )


_NEARER = (
    r"\b(?:midpoints?|tangent|perpendicular\w*|parallel|inscribed|circumscribed|lies?\s+on|radius|radii|diameters?"
    r"|equilateral|isosceles|congruent|cent(?:er|re)d?|bisects?|trisects?|right[- ]angled?|divided\s+into|intersect\w*"
    r"|respectively|folded|adjacent|consecutive)\b"
)
_SAYS_NEARER = _STATEMENT.str.count_matches(cheap(f"(?i){_NEARER}"))
_SAYS_NUMBERS = _STATEMENT.str.count_matches(r"[0-9]+(?:\.[0-9]+)?")
_SAYS_NAMES = _STATEMENT.str.count_matches(r"(?:^|[^A-Za-z\\])[A-Z]{1,6}(?:[^A-Za-z]|$)")

FIGURE_FEATURES: dict[str, pl.Expr] = {
    "figure_numbers_none": _SAYS_NUMBERS == 0,
    "figure_numbers_few": _SAYS_NUMBERS <= 1,
    "figure_numbers_many": _SAYS_NUMBERS >= 4,
    "figure_names_many": _SAYS_NAMES >= 8,
    "figure_says_where": _SAYS_NEARER >= 1,
    "figure_says_much": _SAYS_NEARER >= 3,
    "figure_text_short": _LETTERS < 110,
    "figure_text_long": _LETTERS > 300,
    "figure_in_question": _says(
        r"\b(?:shown|below|above|figure|diagram|picture|graph|shaded|drawn)\b[^.?]{0,40}\?|\?[^?]{0,60}$"
    )
    & _says(
        r"\b(?:what|how|find|which)\b[^.?]{0,100}\b(?:shown|below|above|figure|diagram|picture|graph|shaded|drawn)\b"
    ),
    "figure_as_shown": _says(r"\bas\s+(?:shown|pictured|illustrated|depicted|drawn|in\s+the)\b"),
    "figure_shows": _says(
        r"\b(?:figure|diagram|picture|graph|chart)s?\s+(?:\w+\s+)?(?:shows?|gives?|indicates?|displays?)\b"
    ),
    "figure_of_data": _says(
        r"\b(?:chart|histogram|pictograph|bar\s+graph|line\s+graph|scatter|spinners?|number\s+line)\b"
    ),
    "figure_of_grid": _says(r"\b(?:grid|lattice|dots?|tiles?|unit\s+squares?|toothpicks?|polygon|paths?|network)\b"),
    "figure_graph": _says(r"\bgraph(?:s|ed)?\b"),
    "figure_shaded": _says(r"\b(?:shaded|gray|grey|striped)\b"),
    "figure_shaded_said": _says(
        r"\b(?:outside|inside|between|bounded|common|overlap\w*|remaining|not\s+covered|within|enclosed|intersection)\b"
    )
    & _says(r"\b(?:shaded|gray|grey|striped)\b"),
    "figure_indicated": _says(r"\b(?:indicated|marked|label(?:l?ed|s)|numbered|given\s+in|according\s+to)\b"),
}
"""The same, read only where a figure is spoken of: whether the text says by itself what stands on it."""
