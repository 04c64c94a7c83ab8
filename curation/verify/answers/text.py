r"""Normalises text before parsing: one spelling for what is written in many.

Unicode signs become LaTeX, invisible marks and thousands separators vanish, escapes that JSON decoded (a form feed for
``\f``) return. Every pass is linear.
"""

from __future__ import annotations

import re
import unicodedata

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "－": "-",
    "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ", "÷": r"\div ", "∕": "/", "⁄": "/",
    "≤": r"\le ", "⩽": r"\le ", "≦": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≧": r"\ge ", "≠": r"\ne ", "≈": r"\approx ",
    "≃": r"\approx ", "≅": r"\approx ", "≡": "=", "∞": r"\infty ", "π": r"\pi ",
    "√": r"\sqrt ", "∛": r"\sqrt[3]",
    "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ", "∖": r"\setminus ", "±": r"\pm ", "∓": r"\mp ",
    "°": r"^\circ ", "º": r"^\circ ", "′": "'", "’": "'", "‘": "'", "″": "''", "“": '"', "”": '"', "∑": r"\sum ",
    "∏": r"\prod ", "∫": r"\int ", "∧": r"\land ", "∨": r"\lor ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ",
    "⌉": r"\rceil ", "…": r"\ldots ", "⋯": r"\ldots ", "→": r"\to ", "⇒": r"\Rightarrow ",
    "∠": r"\angle ", "△": r"\triangle ",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}",
    "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "ε": r"\epsilon ", "ζ": r"\zeta ", "η": r"\eta ",
    "θ": r"\theta ", "λ": r"\lambda ", "μ": r"\mu ", "ν": r"\nu ", "ξ": r"\xi ", "ρ": r"\rho ", "σ": r"\sigma ",
    "τ": r"\tau ", "φ": r"\phi ", "ϕ": r"\phi ", "χ": r"\chi ", "ψ": r"\psi ", "ω": r"\omega ", "Δ": r"\Delta ",
    "Σ": r"\Sigma ", "Ω": r"\Omega ", "Φ": r"\Phi ", "Γ": r"\Gamma ", "Λ": r"\Lambda ", "Π": r"\Pi ",
    "∶": ":", "，": ",", "、": ",", "；": ";", "：": ":", "（": "(", "）": ")", "【": "[", "】": "]", "｛": "{",
    "｝": "}", "＝": "=",
    "＋": "+", "＜": "<", "＞": ">", "％": "%", "。": ".", "．": ".", "！": "!", "\u3000": " ",
    "¢": r"\text{ cents}", "€": r"\text{ euros}",
    "£": r"\text{ pounds}", "¥": r"\text{ yuan}", "￥": r"\text{ yuan}", "₹": r"\text{ rupees}", "₽": r"\text{ rubles}",
    "⟨": r"\langle ", "⟩": r"\rangle ", "‖": r"\|", "∥": r"\|", "ℓ": r"\ell ", "⊂": r"\subset ", "⊆": r"\subseteq ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅖": r"\frac{2}{5}", "⅗": r"\frac{3}{5}", "⅘": r"\frac{4}{5}", "⅙": r"\frac{1}{6}",
    "⅚": r"\frac{5}{6}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}", "⅞": r"\frac{7}{8}",
}  # fmt: skip
_SIGN = re.compile("[" + re.escape("".join(_SIGNS)) + "]")
_SUPER = {"⁰": "0", "¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7", "⁸": "8", "⁹": "9",
          "⁺": "+", "⁻": "-", "ⁿ": "n", "ⁱ": "i", "ᵏ": "k", "ˣ": "x", "⁽": "(", "⁾": ")"}  # fmt: skip
_AREA = re.compile(r"(?<=\d)\s?((?:k|c|d|m)?m|ft)([²³])(?![\w²³])")
_SUPERS = re.compile("[" + "".join(_SUPER) + "]+")
_SUB = {"₀": "0", "₁": "1", "₂": "2", "₃": "3", "₄": "4", "₅": "5", "₆": "6", "₇": "7", "₈": "8", "₉": "9", "ₙ": "n",
        "ₖ": "k", "ᵢ": "i", "ₓ": "x", "ₘ": "m", "₊": "+", "₋": "-"}  # fmt: skip
_SUBS = re.compile("[" + "".join(_SUB) + "]+")
_DECODED = re.compile(r"\\?([\x0c\x09\x08\x0d\x0b\x07])(?=([a-z]{2,}))")
_DECODED_LETTER = {"\x0c": "f", "\x09": "t", "\x08": "b", "\x0d": "r", "\x0b": "v", "\x07": "a"}
_DECODED_WORDS = frozenset(
    "rac orall rown lat loor ext imes an heta au o riangle extbf herefore frac fracc oxed inom eta ar egin ullet mod "
    "ight ho angle ightarrow ceil ec arphi ert lpha ngle pprox rctan rcsin rccos st".split()
)
_DOUBLED = re.compile(r"\\\\(?=(?:frac|dfrac|tfrac|sqrt|left|right|le|leq|ge|geq|lt|gt|ne|neq|pi|text|boxed|cdot|times|"
                      r"cup|cap|in|infty|pm|mp|theta|alpha|beta|circ|quad|mathrm|mathbb|mathbf|begin|end|sin|cos|tan|log|ln|"
                      r"binom|overline|ldots|dots|ell)(?![a-zA-Z]))")  # fmt: skip
_THOUSANDS = re.compile(
    r"(?<![\d.,])(\d{1,3})((?:(?:\s?\{,\s*\}|,\s*\\!|\\[,!]|[\u202f\u00a0\u2009]|')\s?\d{3})+)(?![\d])"
)
_SPACED = re.compile(r"(?<![\d.,/\\}])(\d{1,3})((?: \d{3})+)(?![\d/])(?=\s*(?:$|[^\d\s,;]|\.\d|,\d{1,2}(?![\d,])))")
MAX_DOTTED_CHARS = 120
"""Max characters to search for decimals with dots; the search is quadratic."""

_ONLY_TEXT = re.compile(r"\$*\s*\\(?:text|textbf|mathrm|mbox)\s*\{([^{}$]*\d[^{}$]*)\}\s*\$*")
_OUT_OF = re.compile(r"(\d+)\s+out\s+of\s+(\d+)", re.IGNORECASE)
_DEG = re.compile(r"(?<=\d)\s*deg\b")
_CELSIUS = re.compile(
    r"(?:\^\s*\{?\\circ\s*\}?(?:\s|~|\\[, ])*(?:\\(?:text|mathrm|rm)\s*)?\{?\s*([CF])\b\s*\}?"
    r"|degrees?\s+(celsius|fahrenheit|[CF])\b)",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"(?<![\d.])(\d+\.\d*?)(\d{1,6}?)\2{2,}\d*\s*(?:\\[lc]?dots|\.\.\.)$")
_BRACED_COMMA = re.compile(r"(?<=\d)\{,\}(?=\d)(?!\d{3}(?!\d))")
_MINUTES = re.compile(r"(\d+)\s*\^\s*\{?\\circ\s*\}?\s*(\d{1,2})\s*(?:'|\^\{?\\prime\}?)(?:\s*(\d{1,2})\s*'')?")
_MICRO = re.compile(r"(?<=\d)(?:\s|~|\\[, ])*\\mu\s*(?:\\(?:text|mathrm|rm)\s*\{\s*~?)?(m|s|g|F|C|L|A)\b\}?")
_BETWEEN = re.compile(r"(?:between|from)\s+(\S{1,40})\s+(?:and|to)\s+(\S{1,40})", re.IGNORECASE)
_JOINING_LETTER = re.compile(r"(?<=\d)\s+([oyeu])\s+(?=-?\d)")
_OUTWARD_BRACKETS = re.compile(
    r"(^|\\cup|\\in|\\left|[=,;:({])(\s*)\](?=\s*[^\[\]\s{])([^\[\]]{1,80}?[,;][^\[\]]{1,80}?)(\\right\s*)?([\[\]])"
)
_OUTWARD_END = re.compile(r"\[([^\[\]]{1,80}?[,;][^\[\]]{1,80}?)\[(?=\s*(?:$|\\cup|[,;)}]))")
_SPEED = re.compile(r"(?<=\d)\s*((?:k|c|m)?m|ft|mi|g|kg|L)\s*/\s*(s|h|hr|min|m|cm|kg|L)(?:\^(\d))?(?![A-Za-z])")
_GLUED = re.compile(r"(?<=[\d)}])(or|and)(?=[A-Z(\\\d])")
_COLOUR = re.compile(r"\\(?:text)?color\s*(?:\[[^\]]{0,20}\])?\s*\{[^{}]{0,40}\}")
_NON_DIGIT = re.compile(r"\D")
_ESCAPED = re.compile(r"\\u(?!d[89a-f])([0-9a-f]{4})(?![a-z])", re.IGNORECASE)  # as JSON escapes a sign
_CIRCLED = re.compile("[①-⑳](?=[①-⑳])")  # each is a separate answer


def normalise_latex(raw: str) -> str:
    """Return ``raw`` as mostly ASCII LaTeX, without colours and invisible characters."""
    text = _COLOUR.sub(" ", raw) if "color" in raw else raw
    text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text
    whole = _ONLY_TEXT.fullmatch(text.strip()) if "\\" in text else None
    if whole:
        text = whole.group(1)
    if not text.isascii():
        text = "".join(
            char for char in text if char < "\x7f" or unicodedata.category(char) not in ("Cf", "Co", "Cn", "Cs")
        )
        text = _AREA.sub(lambda match: rf"\text{{ {match.group(1)}^{_SUPER[match.group(2)]}}}", text)
        text = _CIRCLED.sub(r"\g<0>, ", text)
        text = _SUPERS.sub(lambda match: "^{" + "".join(_SUPER[char] for char in match.group()) + "}", text)
        text = _SUBS.sub(lambda match: "_{" + "".join(_SUB[char] for char in match.group()) + "}", text)
        text = _THOUSANDS.sub(_close_thousands, text)
        text = _SIGN.sub(lambda match: _SIGNS[match.group()], text)
        text = unicodedata.normalize("NFKC", text)
    if _DECODED.search(text):
        text = _DECODED.sub(_repair_escape, text)
    text = "".join(char for char in text if char >= " " or char in "\n\t\r") if not text.isprintable() else text
    if "\\\\" in text and "\\begin" not in text:
        text = _DOUBLED.sub(r"\\", text)
    if any(char.isdigit() for char in text):
        text = _THOUSANDS.sub(_close_thousands, text)
        text = _SPACED.sub(_close_thousands, text)
        text = _GLUED.sub(r" \1 ", text)
        if "/" in text:
            text = _SPEED.sub(_speed_unit, text)
        text = _rewrite_numbers(text)
    return text.strip()


def _speed_unit(match: re.Match[str]) -> str:
    over, under, power = match.groups()
    return rf"\text{{ {over}/{under}}}" + (f"^{power}" if power else "")


def _rewrite_numbers(text: str) -> str:
    """Rewrite signs next to digits: decimal commas, minutes of arc, μ, "o" and "y", outward brackets."""
    text = _BRACED_COMMA.sub(".", text)
    if len(text) < MAX_DOTTED_CHARS:
        text = _DOTTED.sub(r"\1\\overline{\2}", text)
    text = _DEG.sub(r"^\\circ ", text)
    if "circ" in text or "degree" in text:
        text = _CELSIUS.sub(lambda m: rf"\text{{ deg{(m.group(1) or m.group(2))[0].lower()}}}", text)
    text = _OUT_OF.sub(r"\1/\2", text)
    if "circ" in text:
        text = _MINUTES.sub(_arc_in_degrees, text)
    if "\\mu" in text:
        text = _MICRO.sub(r"\\text{ u\1}", text)
    text = _JOINING_LETTER.sub(lambda match: " or " if match.group(1) in "ou" else " and ", text)
    match = _BETWEEN.fullmatch(text)
    if match:
        text = f"{match.group(1)} to {match.group(2)}"
    if "]" in text or "[" in text:
        text = _OUTWARD_BRACKETS.sub(
            lambda m: f"{m.group(1)}{m.group(2)}({m.group(3)}{m.group(4) or ''}{')' if m.group(5) == '[' else ']'}",
            text,
        )
        text = _OUTWARD_END.sub(r"[\1)", text)
    return text


def _arc_in_degrees(match: re.Match[str]) -> str:
    degrees, minutes, seconds = (int(group or 0) for group in match.groups())
    return rf"\frac{{{degrees * 3600 + minutes * 60 + seconds}}}{{3600}}^\circ"


def _repair_escape(match: re.Match[str]) -> str:
    rest = match.group(2)
    letter = _DECODED_LETTER[match.group(1)]
    if any(rest.startswith(word) for word in _DECODED_WORDS):
        return "\\" + letter
    return match.group()


def _close_thousands(match: re.Match[str]) -> str:
    return match.group(1) + _NON_DIGIT.sub("", match.group(2))


_PIECEWISE = re.compile(r"\\begin\{cases\}(?:[^&]|\\&)*&(?!\s*=)")
_CASES = re.compile(r"\\(?:begin|end)\{cases\}")
_ENV = re.compile(r"\\(?:begin|end)\{(?:align|aligned|equation|gather|split|center)\*?\}|\\(?:no)?indent\b|&(?==)")
_DOLLAR_MONEY = re.compile(r"\\\$(?=\s?[\d.\\])|(?<![\w}$)\]])\$(?=\s?\d)(?![^$]*\$)")
_WRAPPERS = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"), ("**", "**"), ("`", "`"), ('"', '"'))
_TAIL_CHAFF = re.compile(
    r"(?:\s|\\\\|\\noindent|\\medskip|\\qed|\\end\{(?:document|problem|solution|proof|answer|enumerate|itemize|theorem)\}|~|\.(?!\d)|\\)+$"
)


def strip_wrappers(text: str) -> str:
    r"""Return text without math delimiters, alignments and trailing debris; money signs become ``\money``."""
    text = _ENV.sub(" ", text) if "\\" in text else text
    if "{cases}" in text and not _PIECEWISE.search(text):
        text = _CASES.sub(" ", text)
    while True:
        before = text
        text = _TAIL_CHAFF.sub("", text).strip()
        for start, end in _WRAPPERS:
            if text.startswith(start) and text.endswith(end) and len(text) > len(start) + len(end):
                inner = text[len(start) : -len(end)]
                if start not in inner and end not in inner:
                    text = inner.strip()
        if text == before:
            break
    if "$" in text:
        text = _DOLLAR_MONEY.sub(r"\\money ", text).replace("\\$", " ").replace("$", " ")
    return text.replace("\\(", " ").replace("\\)", " ").replace("\\[", " ").replace("\\]", " ").strip()
