r"""Cuts a normalised text into numbers, letters, words, commands and signs.

Layout commands such as ``\left`` vanish; synonyms become one. A run of letters becomes a known name (``sin``), a
letter, or a word for the grammar.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from curation.languages.vocabulary import languages, one_of

MAX_TOKENISED_CHARS = 4000
"""Max characters of a text to tokenise."""


class AnswerParseError(Exception):
    """The text is no known formula."""


class Token(NamedTuple):
    r"""A token; ``at`` is its position in the text, by which forms refer to it.

    Kinds: num, sym, word (letters that may be a name), fun, const, cmd, style, text, op, empty, and env and endenv
    (``\begin`` and ``\end``); the parser adds eof.
    """

    kind: str
    text: str
    at: int = -1


_IGNORED = frozenset(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr displaystyle textstyle scriptstyle limits nolimits "
    "mathstrut strut phantom vphantom hphantom hline hfill par noindent indent medskip bigskip smallskip "
    "mathopen mathclose mathbin mathrel null relax nonumber allowbreak centering protect "
    "Bigm bigm middle tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge".split()
)
_SPACES = frozenset(("quad", "qquad", "enspace", "hspace", "newline", "linebreak"))
_STYLES = frozenset(
    "mathbf mathit mathsf mathtt mathcal mathfrak mathscr boldsymbol bm vec hat widehat tilde widetilde bar overline "
    "overrightarrow overleftarrow dot ddot underline cancel boxed fbox ensuremath pmb mathbb".split()
)
_TEXTS = frozenset(
    "text textbf textit textrm textnormal textsf texttt mbox hbox mathrm operatorname rm bf it mathop".split()
)
FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech csch ln log lg exp "
    "sqrt abs max min gcd lcm floor ceil sgn sign det arcsinh arccosh arctanh cbrt Re Im arg deg dim ker tr".split()
)
_SYNONYMS = {
    "tg": "tan", "ctg": "cot", "cotg": "cot", "cosec": "csc", "arctg": "arctan", "arcctg": "arccot", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "arsinh": "arcsinh", "arcosh": "arccosh", "artanh": "arctanh", "sen": "sin", "HCF": "gcd",
    "GCD": "gcd", "LCM": "lcm",
}  # fmt: skip
_CONSTANTS = {"pi": "pi", "infty": "inf", "infinity": "inf", "inf": "inf", "oo": "inf", "Pi": "pi", "Infinity": "inf"}
_COMMAND_OPS = {
    "cdot": "*", "times": "*", "ast": "*", "div": "÷", "le": "<=", "leq": "<=",
    "leqslant": "<=", "leqq": "<=", "lt": "<",
    "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=", "gt": ">", "ne": "!=", "neq": "!=", "approx": "~=",
    "simeq": "~=", "cong": "~=", "sim": "~=", "doteq": "~=", "thickapprox": "~=", "pm": "±",
    "mp": "∓", "cup": "∪", "cupdot": "∪",
    "bigcup": "∪", "cap": "∩", "setminus": "∖", "backslash": "∖", "in": "∈", "colon": ":",
    "lbrace": "{s", "rbrace": "}s",
    "lbrack": "[", "rbrack": "]", "lparen": "(", "rparen": ")", "land": "and", "wedge": "and", "lor": "or", "vee": "or",
    "mid": "|", "vert": "|", "lvert": "|(", "rvert": ")|", "langle": "⟨", "rangle": "⟩",
    "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈",
    "rceil": "⌉", "ldots": "…", "cdots": "…", "dots": "…", "dotsc": "…", "dotsb": "…", "vdots": "…", "equiv": "=",
    "to": "→", "rightarrow": "→", "Rightarrow": "⇒", "implies": "⇒", "iff": "⇒", "Leftrightarrow": "⇒", "degree": "°",
    "percent": "%", "prime": "'", "notin": "∉", "land ": "and", "longrightarrow": "→",
}  # fmt: skip
_OPENING_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|mbox|hbox|mathrm|operatorname\*?|mathop)\s*\{([^{}]*)\}"
)
_REPEATING = re.compile(r"(\d+\.\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")
_TOKEN = re.compile(
    r"(?P<space>[\s~]+)"
    r"|(?P<num>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4}(?![\w.]))?|\.\d+(?:[eE][+-]?\d{1,4}(?![\w.]))?)"
    r"|(?P<cmd>\\(?:[A-Za-z]+|.))"
    r"|(?P<word>[\u4e00-\u9fff]+|[^\W\d_\u4e00-\u9fff]+)"
    r"|(?P<op>\*\*|<=|>=|=<|=>|!=|==|<>|->|:=|\.\.\.|\|\||[-+*/^_=<>&()\[\]{}|,;:!%'.?@\"#…°])",
    re.DOTALL,
)
_OP_SYNONYMS = {"**": "^", "=<": "<=", "=>": ">=", "==": "=", "<>": "!=", ":=": "=", "->": "→", "...": "…"}
_CMD_SIGNS = {"{": "{s", "}": "}s", "%": "%", "$": "money", "|": "|", "\\": "newline", ";": " ", "\n": " "}
_CONNECTIVES = {
    word: meaning
    for vocab in languages()
    for meaning, words in (("and", vocab.answers.and_words), ("or", vocab.answers.or_words))
    for word in words
}
_AT_END = re.compile(rf"(.*?)[\s,;]+({one_of(lambda vocab: vocab.answers.connectives_at_end)})", re.DOTALL)
_AT_START = re.compile(rf"({one_of(lambda vocab: vocab.answers.connectives_at_start)})\s+(.*)", re.DOTALL)


def tokenise(text: str) -> list[Token]:
    """Return the tokens of ``text``. Raises `AnswerParseError` on foreign signs and long texts."""
    if len(text) > MAX_TOKENISED_CHARS:
        raise AnswerParseError(f"{len(text)} characters")
    text = _REPEATING.sub(_repeating, text) if "\\" in text else text
    text = _OPENING_TEXT.sub(_text, text) if "\\" in text else text
    tokens: list[Token] = []
    starts: list[int] = []
    position = start = 0
    while position < len(text):
        starts += [start] * (len(tokens) - len(starts))
        start = position
        if text[position] == "\ue000":
            end = text.index("\ue001", position)
            _add_text(tokens, text[position + 1 : end])
            position = end + 1
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            raise AnswerParseError(f"sign {text[position]!r}")
        position = match.end()
        kind = match.lastgroup
        lexeme = match.group()
        if kind == "num":
            tokens.append(Token("num", lexeme))
        elif kind == "word":
            _add_word(tokens, lexeme)
        elif kind == "cmd":
            position = _add_command(tokens, lexeme[1:], text, position)
        elif kind == "op":
            tokens.append(Token("op", _OP_SYNONYMS.get(lexeme, lexeme)))
    starts += [start] * (len(tokens) - len(starts))
    return [Token(kind, content, at) for (kind, content, _), at in zip(tokens, starts, strict=True)]


def _repeating(match: re.Match[str]) -> str:
    head, tail = match.groups()
    whole, _, decimals = head.partition(".")
    scale = 10 ** len(decimals)
    nines = 10 ** len(tail) - 1
    top = int(whole + decimals) * nines + int(tail)
    return rf"\frac{{{top}}}{{{scale * nines}}}"


def _text(match: re.Match[str]) -> str:
    return f"\ue000{match.group(1)}\ue001"


def _add_text(tokens: list[Token], content: str) -> None:
    r"""Add the tokens of a ``\text{}``: a name, a letter, a connective, or words."""
    stripped = content.strip().strip("$").strip()
    lower = stripped.lower()
    if not stripped:
        return
    if lower == "to" and tokens:
        tokens.append(Token("op", "to"))
    elif lower in _CONNECTIVES and (len(lower) > 1 or not lower.isascii()):
        tokens.append(Token("op", _CONNECTIVES[lower]))
    elif stripped in FUNCTIONS or stripped in _SYNONYMS:
        tokens.append(Token("fun", _SYNONYMS.get(stripped, stripped)))
    elif stripped in ("e", "i", "d"):
        tokens.append(Token("sym", stripped))
    elif re.fullmatch(r"[-+]?\d+(?:\.\d+)?", stripped):
        tokens.append(Token("num", stripped)) if stripped[0].isdigit() else tokens.append(Token("text", stripped))
    else:
        _split_text(tokens, stripped)


def _split_text(tokens: list[Token], stripped: str) -> None:
    match = _AT_END.fullmatch(stripped)
    if match and match.group(1):
        tokens.append(Token("text", match.group(1)))
        tokens.append(Token("op", _CONNECTIVES[match.group(2)]))
        return
    match = _AT_START.fullmatch(stripped)
    if match:
        tokens.append(Token("op", _CONNECTIVES[match.group(1)]))
        stripped = match.group(2)
    tokens.append(Token("text", stripped))


def _add_word(tokens: list[Token], word: str) -> None:
    if len(word) == 1 and word.isascii():
        tokens.append(Token("sym", word))
        return
    lower = word.lower()
    if word in FUNCTIONS or word in _SYNONYMS:
        tokens.append(Token("fun", _SYNONYMS.get(word, word)))
    elif lower in _CONNECTIVES and (len(word) > 1):
        tokens.append(Token("op", _CONNECTIVES[lower]))
    elif lower == "to" and tokens:
        tokens.append(Token("op", "to"))
    elif word in ("mod", "pmod"):
        tokens.append(Token("cmd", "mod"))
    elif word in _CONSTANTS:
        tokens.append(Token("const", _CONSTANTS[word]))
    elif word == "union" and tokens:
        tokens.append(Token("op", "∪"))
    elif word.isascii():
        tokens.append(Token("word", word))
    elif word in _CONNECTIVES:
        tokens.append(Token("op", _CONNECTIVES[word]))
    else:
        tokens.append(Token("text", word))


def _add_command(tokens: list[Token], name: str, text: str, position: int) -> int:
    if not name[0].isalpha():
        sign = _CMD_SIGNS.get(name)
        if sign is not None and sign != " ":
            tokens.append(Token("op", sign))
        return position
    if name in _IGNORED:
        if name in ("left", "right") and text[position : position + 1] == ".":
            return position + 1
        return position
    if name in _SPACES:
        tokens.append(Token("op", "space"))
    elif name in _COMMAND_OPS:
        tokens.append(Token("op", _COMMAND_OPS[name]))
    elif name in _CONSTANTS and name != "Pi":
        tokens.append(Token("const", _CONSTANTS[name]))
    elif (name in FUNCTIONS and name != "sqrt") or name in _SYNONYMS:
        tokens.append(Token("fun", _SYNONYMS.get(name, name)))
    elif name in _STYLES or name in _TEXTS:
        tokens.append(Token("style", name))
    elif name in ("begin", "end"):
        end = text.find("}", position)
        if end < 0:
            raise AnswerParseError("unfinished environment")
        tokens.append(Token("env" if name == "begin" else "endenv", text[position:end].strip(" {")))
        return end + 1
    elif name in ("varphi", "varepsilon", "vartheta", "varrho"):
        tokens.append(Token("sym", name[3:]))
    elif name in _COMMANDS:
        tokens.append(Token("cmd", _SAME_COMMANDS.get(name, name)))
    elif name in ("emptyset", "varnothing"):
        tokens.append(Token("empty", ""))
    elif name in ("angle", "triangle", "because", "therefore", "forall", "exists", "displaylines", "square"):
        tokens.append(Token("text", name))
    else:
        tokens.append(Token("sym", name))
    return position


_SAME_COMMANDS = {"dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom"}
_COMMANDS = frozenset("frac dfrac tfrac cfrac sqrt root binom dbinom tbinom sum prod int lim over choose not "
                      "mod bmod pmod operatorname iint oint partial stackrel overset underset "
                      "xrightarrow sideset".split())  # fmt: skip


OPENERS = frozenset(("(", "[", "{", "{s", "⟨", "⌊", "⌈", "|("))
CLOSERS = frozenset((")", "]", "}", "}s", "⟩", "⌋", "⌉", ")|"))


def split_tokens(tokens: list[Token], separators: frozenset[str]) -> tuple[list[list[Token]], list[Token]]:
    """Split ``tokens`` at separators outside brackets; return parts and separators."""
    parts: list[list[Token]] = [[]]
    delimiters: list[Token] = []
    level = 0
    for token in tokens:
        if token.kind in ("op", "env", "endenv"):
            if token.kind == "env" or token.text in OPENERS:
                level += 1
            elif token.kind == "endenv" or token.text in CLOSERS:
                level -= 1
            elif level <= 0 and token.text in separators:
                delimiters.append(token)
                parts.append([])
                continue
        parts[-1].append(token)
    return parts, delimiters
