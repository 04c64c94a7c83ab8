r"""References written in another way: the same answer, which a verifier must accept.

Each rewriting is a function of the text alone that returns the text where it does not apply. None of them uses the
verifier's own reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

MAX_INTEGER_DIGITS = 15
_PLAIN_FRACTION = re.compile(r"\\[dt]?frac\{(\d{1,6})\}\{(\d{1,6})\}(?![\^\w])")
_DECIMAL = re.compile(r"(?<![\d.,\w\\])(\d{1,4})\.(\d{1,4})(?![\d.,\w])")
_WHOLE_NUMBER = re.compile(r"\s*\$?\s*(-?)(\d{1,15})\s*\$?\s*\.?\s*")
_FLAT_SET = re.compile(r"\\\{\s*((?:-?\w+\s*,\s*)+-?\w+)\s*\\\}")
_FLAT_LIST = re.compile(r"\s*(-?\d+(?:\s*,\s+-?\d+)+)\s*")
_FLAT_SUM = re.compile(r"\s*\$?([a-z0-9]\w*(?:\^\{?\d\}?)?(?:\s*[+-]\s*[a-z0-9]\w*(?:\^\{?\d\}?)?)+)\$?\s*")
_ATOM = r"(?:\d+|[a-z]|\\pi)"
_MORE_THAN_A_VALUE = re.compile(
    r"[,;=<>%:!|\[\]]|_\{?\d+\}?$|^[A-Z][.)]"
    r"|\\(?:[lg]eq?|[lg]eqslant|neq?|in|cup|pm|mp|circ|to|\{|\$|%|mid|approx|mathbb|equiv|emptyset|varnothing|infty)(?![a-z])"
)
_SMALL_FRACTION = rf"(?<![\\\w])(?<!\d )\\[dt]?frac\{{({_ATOM})\}}\{{({_ATOM})\}}(?![\w^\\({{])"
_SIGNS = {
    r"\pi": "π", r"\infty": "∞", r"\le": "≤", r"\leq": "≤", r"\ge": "≥", r"\geq": "≥", r"\ne": "≠", r"\neq": "≠",
    r"\cup": "∪", r"\cap": "∩", r"\in": "∈", r"\pm": "±", r"\times": "×", r"\cdot": "·", r"\theta": "θ",
    r"\alpha": "α", r"\beta": "β", r"\lambda": "λ", r"\emptyset": "∅",
}  # fmt: skip


def rewritings(reference: str) -> dict[str, str]:
    """Return every rewriting that applies to a reference, by its name."""
    rewritten = {name: rewrite(reference) for name, rewrite in _REWRITINGS.items()}
    return {name: text for name, text in rewritten.items() if text != reference}


def _is_formula(text: str) -> bool:
    """Return whether no words and no delimiters stand in a text."""
    bare = re.sub(r"\\[A-Za-z]+", " ", text)
    return not re.search(r"[A-Za-z]{2,}|[$'\"\n]|\*\*|[eE][+-]|[^\x00-\x7f]|\\[()\[\]\\]", bare) and not re.search(
        r"\\(?:text|boxed|mathrm|noindent|overline|underline)|[A-Za-z]{4,}(?<!\\)'", text
    )


def _in_formula(rewrite: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: rewrite(text) if _is_formula(text.strip("$ ")) and text.count("$") in (0, 2) else text


def _sub(pattern: str, replacement: str | Callable[[re.Match[str]], str], count: int = 0) -> Callable[[str], str]:
    compiled = re.compile(pattern)
    return lambda text: compiled.sub(replacement, text, count=count)


def _unicode_signs(text: str) -> str:
    return re.sub(r"\\[A-Za-z]+", lambda match: _SIGNS.get(match.group(), match.group()), text)


def _without_spaces(text: str) -> str:
    """Drop the spaces that do not end a command or part words and items."""
    return re.sub(r"(?<![A-Za-z,;.\\]) +(?![A-Za-z\d(])|(?<=[+=<>-]) +(?=\d)", "", text)


def _decimal_as_fraction(text: str) -> str:
    def fraction(match: re.Match[str]) -> str:
        value = Fraction(match.group())
        return str(value) if value.denominator == 1 else rf"\frac{{{value.numerator}}}{{{value.denominator}}}"

    whole = text.strip("$ ")
    return fraction(match) if (match := _DECIMAL.fullmatch(whole)) else text


def _fraction_as_decimal(text: str) -> str:
    match = _PLAIN_FRACTION.fullmatch(text.strip("$ "))
    if match is None or not int(match.group(2)):
        return text
    value = Fraction(int(match.group(1)), int(match.group(2)))
    places = next((places for places in range(1, 8) if (value * 10**places).denominator == 1), None)
    return text if places is None else f"{float(value):.{places}f}"


def _mixed_number(text: str) -> str:
    match = _PLAIN_FRACTION.fullmatch(text.strip("$ "))
    if match is None or not int(match.group(2)):
        return text
    whole, rest = divmod(int(match.group(1)), int(match.group(2)))
    return rf"{whole}\frac{{{rest}}}{{{match.group(2)}}}" if whole and rest else text


def _scaled_fraction(text: str) -> str:
    return _PLAIN_FRACTION.sub(lambda m: rf"\frac{{{3 * int(m.group(1))}}}{{{3 * int(m.group(2))}}}", text, count=1)


def _thousands(joint: str) -> Callable[[str], str]:
    def rewrite(text: str) -> str:
        match = _WHOLE_NUMBER.fullmatch(text)
        return match.group(1) + f"{int(match.group(2)):,}".replace(",", joint) if match else text

    return rewrite


def _whole(template: str) -> Callable[[str], str]:
    """Return a rewriting of whole numbers: ``template`` with the number in the place of N."""

    def rewrite(text: str) -> str:
        match = _WHOLE_NUMBER.fullmatch(text)
        return template.replace("N", match.group(1) + str(int(match.group(2)))) if match else text

    return rewrite


def _reversed_items(pattern: re.Pattern[str], start: str, end: str) -> Callable[[str], str]:
    def rewrite(text: str) -> str:
        match = pattern.fullmatch(text.strip("$ "))
        return start + ", ".join(part.strip() for part in match.group(1).split(",")[::-1]) + end if match else text

    return rewrite


def _reversed_sum(text: str) -> str:
    match = _FLAT_SUM.fullmatch(text)
    if match is None:
        return text
    terms = re.findall(r"[+-]?[^+-]+", match.group(1).replace(" ", ""))
    return "".join(term if term[0] in "+-" else "+" + term for term in terms[::-1]).removeprefix("+")


def _reversed_relation(text: str) -> str:
    match = re.fullmatch(r"(\$?)([\w+^{} -]+?)\s*(<|>|\\leq?(?![a-z])|\\geq?(?![a-z]))\s*([\w+^{} -]+?)(\$?)", text)
    if match is None:
        return text
    start, left, relation, right, end = match.groups()
    flipped = {"<": ">", ">": "<", r"\le": r"\ge ", r"\leq": r"\ge ", r"\ge": r"\le ", r"\geq": r"\le "}[relation]
    return f"{start}{right} {flipped} {left}{end}"


def _bare_inside(text: str) -> str | None:
    """Return a formula without its dollars; None where the text is anything else."""
    inner = text.strip().strip("$").strip().rstrip(" .")
    return inner if inner and _is_formula(inner) and "$" not in inner else None


def _around(start: str, end: str) -> Callable[[str], str]:
    def rewrite(text: str) -> str:
        inner = _bare_inside(text)
        return start + inner + end if inner is not None else text

    return rewrite


def _value(template: str) -> Callable[[str], str]:
    """Return a rewriting of single values in digits, letters, fractions and roots, without lists and relations."""

    def rewrite(text: str) -> str:
        inner = _bare_inside(text)
        if inner is None or _MORE_THAN_A_VALUE.search(inner):
            return text
        return text if re.fullmatch(r"\(?[A-Z]\)?", inner) else template.replace("N", inner)

    return rewrite


def _units_spelled(text: str) -> str:
    spelled = {"cm": "centimeters", "km": "kilometers", "kg": "kilograms", "mm": "millimeters", "hr": "hours"}
    match = re.fullmatch(r"(\$?-?[\d.]+)\s*(?:\\text\{)?\s*(cm|km|kg|mm|hr)\}?(\$?)", text.strip())
    return f"{match.group(1)}{match.group(3)} {spelled[match.group(2)]}" if match else text


_REWRITINGS: dict[str, Callable[[str], str]] = {
    "in dollars": lambda text: f"${text}$" if "$" not in text and _is_formula(text) else text,
    "in double dollars": _around("$$", "$$"),
    "in \\( \\)": _around(r"\(", r"\)"),
    "boxed": _around(r"\boxed{", "}"),
    "boxed in dollars": _around(r"$\boxed{", "}$"),
    "bold": _around("**", "**"),
    "trailing period": lambda text: f"{text.strip()}." if not text.rstrip().endswith((".", "\\")) else text,
    "line breaks around": lambda text: f"\n {text}\n",
    "displaystyle": _around(r"\displaystyle ", ""),
    "braces": _around("{", "}"),
    "dfrac": lambda text: text.replace(r"\frac", r"\dfrac"),
    "tfrac": lambda text: text.replace(r"\frac", r"\tfrac"),
    "fraction by a slash": _in_formula(_sub(_SMALL_FRACTION, r"((\1)/(\2))")),
    "scaled fraction": _scaled_fraction,
    "mixed number": _mixed_number,
    "decimal as fraction": _decimal_as_fraction,
    "fraction as decimal": _fraction_as_decimal,
    "zero behind a decimal": lambda text: text.strip("$ ") + "0" if _DECIMAL.fullmatch(text.strip("$ ")) else text,
    "thousands by commas": _thousands(","),
    "thousands by {,}": _thousands("{,}"),
    "whole number as decimal": _whole("N.0"),
    "whole number as fraction": _whole(r"\frac{N}{1}"),
    "plus sign": _whole("+N"),
    "left and right": _in_formula(lambda text: text.replace("(", r"\left(").replace(")", r"\right)")
                                  if "\\left" not in text and text.count("(") == text.count(")") and "[" not in text
                                  and "]" not in text and "\\right" not in text else text),
    "no left and right": lambda text: re.sub(r"\\(?:left|right)(?![a-z.])\s*", "", text),
    "wide spaces": _in_formula(_sub(r"(?<=[\w})])([+=])(?=[\w\\({])", r" \; \1 \, ")),
    "no spaces": _in_formula(_without_spaces),
    "signs of Unicode": _unicode_signs,
    "minus of Unicode": _in_formula(lambda text: text.replace("-", "−")),
    "cdot as times": _in_formula(_sub(r"\\cdot(?![a-z])", r"\\times")),
    "times as a star": _in_formula(_sub(r"\\times(?![a-z])|\\cdot(?![a-z])", "*")),
    "braces around exponents": _sub(r"\^(\d|[a-z])(?![\d_])", r"^{\1}"),
    "square as a product": _in_formula(_sub(r"(?<![\w})'_\\])([a-z])\^(?:2|\{2\})(?![\d^_.])", r"\1 \\cdot \1")),
    "root as a power": _in_formula(_sub(r"\\sqrt\{(\d+)\}(?!\^)", r"{(\1)}^{1/2}")),
    "power as a root": _in_formula(_sub(r"(?<![\w})])(\d+)\^\{(?:1/2|\\frac\{1\}\{2\})\}", r"\\sqrt{\1}")),
    "order of a set": _reversed_items(_FLAT_SET, r"\{", r"\}"),
    "order of a list": _reversed_items(_FLAT_LIST, "", ""),
    "order of a sum": _reversed_sum,
    "relation reversed": _reversed_relation,
    "leq as le": _sub(r"\\(l|g|n)eq(?![a-z])", r"\\\1e"),
    "percent in words": _sub(r"^\s*\$?(-?[\d.]+)\s*\\?%\$?\s*$", r"\1 percent"),
    "degrees in words": _sub(r"^\s*\$?(-?[\d.]+)\s*\^\s*\{?\\circ\}?\$?\s*$", r"\1 degrees"),
    "degree sign": _in_formula(_sub(r"\^\s*\{?\\circ\}?", "°")),
    "unit in text": _sub(r"^\s*(-?[\d.]+) (cm|km|kg|meters|hours|minutes|dollars|days)$", r"\1 \\text{ \2}"),
    "unit spelled": _units_spelled,
    "labelled": _value("x_0 = N"),
    "times one": _value(r"1 \cdot \left(N\right)"),
    "plus zero": _value("N + 0"),
    "halved and doubled": _value(r"\frac{2 \left(N\right)}{2}"),
    "double negation": _value(r"-\left(-\left(N\right)\right)"),
}  # fmt: skip
