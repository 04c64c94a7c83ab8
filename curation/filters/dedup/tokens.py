r"""Reads texts as tokens, equal for all spellings of a number or symbol (``\frac{1}{2}``, ``1/2`` and ``½``).

Case, punctuation, layout, leading labels and shared passages are ignored.

Invariant: a text's tokens depend on the text and the shared passages alone.
"""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.languages.vocabulary import every, language

PASSAGE, EDGES = 8, 4
"""Tokens of a passage, and how many may be past the text's edge."""

SHARED_BY, MIN_SHARED_BY = 0.1, 4
"""Min share and number of a source's rows with a shared passage."""

MIN_LEFT = 5
"""A row with fewer other tokens keeps its passages."""

_ENGLISH = language("en").numerals
_NUMBERS = {
    **{word: str(value) for value, word in enumerate(_ENGLISH.units[2:], 2)},
    **{word: str(10 * value) for value, word in enumerate(_ENGLISH.tens, 2)},
}

FUNCTIONS = tuple(
    (
        "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp max min sup inf gcd lcm lim det mod"
    ).split()
)
_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi"
_SYMBOLS = (
    "≤ le leq leqslant leqq|≥ ge geq geqslant geqq|≠ ne neq|< lt textless|> gt textgreater|√ sqrt|∞ infty|∑ sum|∏ prod|"
    "∫ int|± pm|∈ in|∉ notin|∪ cup|∩ cap|⊂ subset|⊆ subseteq|∖ setminus|∅ emptyset varnothing|∠ angle|△ triangle|"
    "⊥ perp|∥ parallel|÷ div|⌊ lfloor|⌋ rfloor|⌈ lceil|⌉ rceil|≡ equiv|≈ approx|≅ cong|∼ sim|∣ mid|∂ partial|"
    "∧ wedge land|∨ vee lor|¬ neg lnot|∀ forall|∃ exists"
)
SYMBOLS = "".join(line[0] for line in _SYMBOLS.split("|"))
"""Signs that are tokens."""

_UNICODE = {
    **{rf"\{name}": symbol for symbol, *names in (line.split() for line in _SYMBOLS.split("|")) for name in names},
    **{rf"\{name}": letter for letter, name in zip("αβγδεζηθικλμνξπρστυφχψ", _GREEK.split(), strict=True)},
    **{rf"\{name}": name for name in FUNCTIONS},
    **{r"\omega": "ω", r"\varepsilon": "ε", r"\varphi": "φ", r"\vartheta": "θ", r"\pmod": "mod", r"\bmod": "mod"},
    **{r"\choose": r"\binom", r"\dbinom": r"\binom", r"\tbinom": r"\binom", "sqrt": "√", "⩽": "≤", "⩾": "≥"},
}
_LAYOUT = tuple(
    rf"\{name}"
    for name in (
        "left right big bigl bigr bigg biggl biggr middle displaystyle textstyle limits quad qquad frac dfrac tfrac "
        "cfrac over text textbf textit textrm texttt mathrm mathbf mathit mathbb mathcal mathsf mathfrak operatorname "
        "mbox hbox rm bf it cdot cdots ldots dots vdots times begin end overline underline boxed circ degree lvert "
        "rvert vert to rightarrow hspace vspace item par"
    ).split()
)
"""Commands of layout, or without a sign in plain text (``3/4``, ``2x``)."""

TELLING = frozenset(("=", "<", ">", "≤", "≥", "≠", "√", "÷", *FUNCTIONS, *every(lambda lang: lang.duplicates.telling)))
"""Tokens that, like numbers, distinguish problems."""

_LABELS = every(lambda lang: lang.duplicates.labels)
_CALLED = rf"(?i:{'|'.join(word for word in _LABELS if word[0].islower())})"
_HAN = rf"(?:{'|'.join(word for word in _LABELS if not word[0].islower())})"
_NUMBER = r"\p{L}{0,2}\d+(?:[.\-–]\d+)*\p{L}?"
_INSIDE = r"[^()\[\]【】（）$\\\n]{0,60}"
LABELS = (
    r"^[\s*_]*(?:"
    + "|".join(
        (
            rf"[(\[【（](?:{_INSIDE}(?:\p{{L}}{{2}}|\p{{Han}}){_INSIDE}\d|{_INSIDE}\d{_INSIDE}(?:\p{{L}}{{2}}|\p{{Han}})){_INSIDE}[)\]】）][.:]?",
            r"#{1,6}[^\n$?]{0,80}\d[^\n$?]{0,40}\n",
            rf"#*\s*(?:{_CALLED}\.?\s*)?{_NUMBER}(?:[.):：][*_]*\s|[、．])",
            rf"#*\s*{_CALLED}\.?\s*[#№]?{_NUMBER}[.):：]?[*_]*\s",
            rf"{_HAN}\s*\d+(?:\p{{Han}}?\s*[.、:：．\s])?",
        )
    )
    + r")[\s*_]*"
)
_BARE_LABEL = r"^\s*\d+(?:[.\-]\d+)+\s+(\p{Lu})"

_THOUSANDS = r"(\d)(?:,|\{,\})(\d{3})\b"
_RAISED = r"([⁰-ₜ²³¹ᵢ-ᵪ¼-¾⅐-⅟]+)"
_STEPS = (
    (r"(\p{Greek})(\p{Latin})", "$1 $2"),
    (r"(\p{Latin})(\p{Greek})", "$1 $2"),
    (r"\\(?:begin|end)\{[^{}]*\}(?:\{[lcr|]*\})?", " "),
    (r"\\[,;:!>\s()\[\]]", " "),
    (r"\{([^{}]*)\\choose\b([^{}]*)\}", r"\binom $1 $2"),
    (r"\\[dtc]?(frac|binom)\s*(\d)\s*(\d)", r"\$1 $2 $3"),
    (r"<=", " ≤ "),
    (r">=", " ≥ "),
    (r"!=", " ≠ "),
    (r"(\d\.\d*[1-9])0+\b", "$1"),
    (r"(\d)\.0+\b", "$1"),
    (r"[-−–]\s*([\d$\\(]|\p{L}\b)", " minus $1"),
    (r"\+", " plus "),
    (r"[.?!:;。？！：；][\"'”’)\]$*_}]*(?:\s|$)|\n", " ¶ "),
    (r"[(\[](\d+\s+\p{L}{2})", " ¶ $1"),
)
_TOKEN = r"\\\p{L}+|\d+(?:\.\d+)?|[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}]+|[¶=⩽⩾" + SYMBOLS + "]"
_BREAK = "¶"


def tokenize(statements: pl.Series) -> pl.DataFrame:
    """Return ordered tokens by `row` (index); `opens` marks the first of a sentence or line."""
    text = pl.col("text")
    for _ in range(3):
        text = text.str.replace(LABELS, "")
    text = text.str.replace(_BARE_LABEL, "$1")
    for pattern, replacement in ((_THOUSANDS, "$1$2"), (_THOUSANDS, "$1$2"), (r"([\p{Ll}\d])(\p{Lu})", "$1 $2")):
        text = text.str.replace_all(pattern, replacement)
    text = text.str.replace_all(_RAISED, " $1 ").str.normalize("NFKC").str.to_lowercase()
    for pattern, replacement in _STEPS:
        text = text.str.replace_all(pattern, replacement)
    rows = pl.DataFrame({"text": statements.cast(pl.String)}).with_row_index("row")
    lines = rows.select("row", token=text.str.extract_all(_TOKEN)).explode("token").drop_nulls("token")
    lines = lines.filter(~pl.col("token").is_in(_LAYOUT))
    is_first = (pl.col("row") != pl.col("row").shift(1)) | (pl.col("token").shift(1) == _BREAK)
    lines = lines.with_columns(opens=is_first.fill_null(True)).filter(pl.col("token") != _BREAK)
    lines = lines.with_columns(pl.col("token").replace({**_NUMBERS, **_UNICODE}))
    vocabulary = lines["token"].unique()
    hashes = pl.Series([text_hash(token) for token in vocabulary], dtype=pl.UInt64)
    names = pl.DataFrame({"token": vocabulary, "hash": hashes})
    return lines.join(names, on="token", how="left", maintain_order="left").select("row", "token", "hash", "opens")


def token_runs(lines: pl.DataFrame, length: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return first index and hash of each run of tokens."""
    return _runs(lines["row"].to_numpy(), lines["hash"].to_numpy(), length)


def _runs(
    row: NDArray[np.integer], token: NDArray[np.uint64], length: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    count = len(token) - length + 1
    if count <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    run = np.zeros(count, dtype=np.uint64)
    for offset in range(length):
        run = run * np.uint64(0x9E3779B97F4A7C15) + token[offset : offset + count]
    first = np.flatnonzero(row[:count] == row[length - 1 :])
    return first, mix(run[first])


def shared_passages(lines: pl.DataFrame, sources: pl.Series) -> NDArray[np.uint64]:
    """Return sorted hashes of passages that a source's rows share."""
    row, token, _ = _edged(lines)
    first, run = _runs(row, token, PASSAGE)
    passages = pl.DataFrame({"row": row[first], "run": run}).unique()
    names = pl.DataFrame({"source": sources}).with_row_index("row").with_columns(rows=pl.len().over("source"))
    counted = passages.join(names, on="row").group_by("source", "run").agg(n=pl.len(), rows=pl.col("rows").first())
    enough = pl.max_horizontal(SHARED_BY * pl.col("rows"), pl.min_horizontal("rows", MIN_SHARED_BY), 2)
    return np.unique(counted.filter(pl.col("n") >= enough)["run"].to_numpy())


def without_passages(lines: pl.DataFrame, passages: NDArray[np.uint64]) -> pl.DataFrame:
    """Remove passages, unless too little would be left."""
    if not len(passages):
        return lines
    row, token, positions = _edged(lines)
    first, run = _runs(row, token, PASSAGE)
    first = first[np.isin(run, passages)]
    change = np.zeros(len(row) + 1, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, first + PASSAGE, -1)
    row, is_outside = row[positions], np.cumsum(change[:-1])[positions] == 0
    left = np.bincount(row[is_outside], minlength=int(row.max(initial=0)) + 1)
    return lines.filter(pl.Series(is_outside | (left[row] < MIN_LEFT)))


def _edged(lines: pl.DataFrame) -> tuple[NDArray[np.integer], NDArray[np.uint64], NDArray[np.int64]]:
    """Return rows and hashes with `EDGES` marks around each text, and tokens' indices."""
    row, token = lines["row"].to_numpy(), lines["hash"].to_numpy()
    number = np.cumsum(np.diff(row, prepend=row[:1]) != 0)
    positions = np.arange(len(row)) + EDGES * (2 * number + 1)
    rows, sizes = np.unique(row, return_counts=True)
    tokens = np.zeros(len(row) + 2 * EDGES * len(rows), dtype=np.uint64)
    tokens[positions] = token
    return np.repeat(rows, sizes + 2 * EDGES), tokens, positions


def text_hash(text: str) -> int:
    """Return 64 bits of the text's BLAKE2 hash."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits by SplitMix64's finaliser (Sebastiano Vigna)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
