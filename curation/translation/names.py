"""The names of a problem and of its translation, in whatever script.

A name is a capitalised word of the original that the translation has too: as it is, with an ending of its own, or
transcribed. Transcribed names are compared by their consonants in Latin letters, in classes of sounds that one language
or another does not keep apart (Джанет, 珍妮特, Janet).

Invariants: pure functions. A name that is not found again says nothing here.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

from text_unidecode import unidecode

from curation.languages.vocabulary import language
from curation.translation.sentences import Segment

_CAPITALISED = re.compile(
    r"(?<![^\W\d_])[^\W\d_a-z\u0430-\u044f\u0451\u3400-\u9fff][a-zà-ÿ\u0430-\u044f\u0451]+(?:[A-Z][a-z]+)?(?:-[A-Z\u0410-\u042f][a-z\u0430-\u044f\u0451]+)?"
)
_SOUNDS = (
    ("dzh", "j"), ("zh", "j"), ("kh", "h"),
    ("tch", "j"), ("ch", "j"), ("sch", "s"), ("sh", "s"), ("th", "t"), ("ph", "f"),
    ("ck", "k"), ("qu", "k"),
    ("x", "s"), ("ts", "s"), ("z", "s"), ("c", "k"), ("q", "j"), ("w", "v"),
)  # fmt: skip
_LOOSE = str.maketrans("bpdtgkhlrmnsjfvy", "bbddgggllnnssff.")
"""Classes of sounds that a transcription into Chinese does not keep apart."""
_ENDING = 4
"""Letters that a name may be longer by in another script."""
_LONGEST = 6
"""Characters of the longest transcribed name that is looked for."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the original, and how the translation writes it.

    Example: ``Name("Janet", ("Джанет", "Джанета"))``
    """

    original: str
    forms: tuple[str, ...]


def names_of(original: str, translated: str, source: str, target: str) -> list[Name]:
    """Return the names that both texts have; none where fewer than two do."""
    words = _candidates(original, source)
    candidates = [
        word
        for word in words
        if not _is_first_part(original, translated if language(target).spaced else original, word, words)
    ]
    if len(candidates) < 2:
        return []
    taken: dict[str, str] = {}
    small = _small_words(target)
    for form in (form for form in _forms(translated) if form in candidates or form.lower() not in small):
        best = max(candidates, key=lambda name: (_likeness(name, form, target), -len(name)))
        if _likeness(best, form, target) > 0:
            taken[form] = best
    as_written = {name for form, name in taken.items() if form == name}
    taken = {form: name for form, name in taken.items() if form.isascii() or name not in as_written}
    names = [Name(name, tuple(form for form, of in taken.items() if of == name)) for name in candidates]
    short = Counter(_consonants(name) for name in candidates)
    is_spaced = language(target).spaced
    names = [name if _tells(name, short, is_spaced) else Name(name.original, ()) for name in names]
    loose = Counter(_consonants(name).translate(_LOOSE) for name in candidates)
    names = [_written(name, translated, target, loose) for name in names]
    return [name for name in _apart(names, translated, target, loose) if name.forms]


def _apart(names: list[Name], translated: str, target: str, alike: Counter[str]) -> list[Name]:
    """Return the names without forms that are only a part of another name's, as Eric in Garrick's transcription.

    A name that loses its forms so is looked for again where no other name stands.
    """
    longer = {form: name.original for name in names for form in name.forms if not form.isascii()}
    apart: list[Name] = []
    for name in names:
        parts = [form for form in name.forms if _is_part(form, name.original, longer)]
        kept = Name(name.original, tuple(form for form in name.forms if form not in parts))
        if parts and not kept.forms:
            others = sorted((form for form, of in longer.items() if of != name.original and form not in parts), key=len)
            rest = re.sub("|".join(map(re.escape, others[::-1])) or r"(?!)", "，", translated)
            kept = _written(kept, rest, target, alike)
        apart.append(kept)
    return apart


def _is_part(form: str, of: str, forms: dict[str, str]) -> bool:
    return not form.isascii() and any(form in other and form != other and name != of for other, name in forms.items())


def exchanged_names(segment: Segment, names: list[Name]) -> tuple[str, str] | None:
    """Return two names of a segment that changed places; None where none did."""
    before = _order(segment.before, [(name.original, (name.original,)) for name in names])
    after = _order(segment.after, [(name.original, name.forms) for name in names])
    lost, new = [name for name in before if name not in after], [name for name in after if name not in before]
    if lost and new:
        return lost[0], new[0]
    first, second = [name for name in before if name in after], [name for name in after if name in before]
    return next(((a, b) for a, b in zip(first, second, strict=True) if a != b), None)


def exchanged_owners(segment: Segment, names: list[Name], source: str, target: str) -> tuple[str, str] | None:
    """Return two names, where something is the first's in the original and the second's in the translation alone.

    Each stands once on either side: of names that come again nothing can be said.
    """
    once = [
        name
        for name in names
        if len(places_of(segment.before, (name.original,))) == len(places_of(segment.after, name.forms)) == 1
    ]
    if len(once) < 2 or not language(target).meaning.owner or not language(target).spaced:
        return None
    before = [name for name in once if _owns(segment.before, (name.original,), source)]
    after = [name for name in once if _owns(segment.after, name.forms, target)]
    lost, new = [name for name in before if name not in after], [name for name in after if name not in before]
    if not (len(lost) == len(new) == 1) or _together(segment.before, lost[0].original, new[0].original):
        return None
    return lost[0].original, new[0].original


def joined_names(segment: Segment, names: list[Name], pair: tuple[str, str]) -> bool:
    """Return whether two names are joined on both sides: Ann and Bob are Bob and Ann."""
    forms = {name.original: name.forms for name in names}
    counts = [len(places_of(segment.before, (one,))) + len(places_of(segment.after, forms[one])) for one in pair]
    if counts != [2, 2]:
        return False
    after = any(stand_together(segment.after, one, other) for one in forms[pair[0]] for other in forms[pair[1]])
    return after and stand_together(segment.before, *pair) and "'s" not in segment.before.replace("’", "'")


def owner_stays(segment: Segment, names: list[Name], pair: tuple[str, str], source: str, target: str) -> bool:
    """Return whether something is of the same one of two names on both sides: Aaron, Henry's brother, in any order."""
    mine = [name for name in names if name.original in pair]
    before = [name for name in mine if _owns(segment.before, (name.original,), source)]
    after = [name for name in mine if _owns(segment.after, name.forms, target)]
    joined = _together(segment.before, *pair)
    return len(mine) == 2 and len(before) == 1 and before == after and not joined


def stand_together(text: str, first: str, second: str) -> bool:
    """Return whether two names are joined: what is one's is the other's, too."""
    first, second = re.escape(first), re.escape(second)
    joined = r"[^.?!\w]*(?:\w{1,4}\W+|[\u3400-\u9fff])?"
    return bool(re.search(f"{first}(?:['’]s)?{joined}{second}|{second}(?:['’]s)?{joined}{first}", text))


def _together(text: str, first: str, second: str) -> bool:
    """Return whether two names are joined, and neither says whose the other is."""
    return stand_together(text, first, second) and not _explained(text, first, second)


def _explained(text: str, first: str, second: str) -> bool:
    """Return whether one of two names says whose the other is: Doug, Betty's friend."""
    one, other = re.escape(first), re.escape(second)
    return re.search(rf"{one},\s{other}['’]s\s|{other},\s{one}['’]s\s", text) is not None


def compared_stays(segment: Segment, names: list[Name], pair: tuple[str, str], source: str, target: str) -> bool:
    """Return whether the same one of two names is what the other is compared with: more than Ann, 比安."""
    mine = [name for name in names if name.original in pair]
    before = [name.original for name in mine if _is_compared(segment.before, (name.original,), source)]
    after = [name.original for name in mine if _is_compared(segment.after, name.forms, target)]
    return len(before) == 1 and before == after


def _is_compared(text: str, forms: tuple[str, ...], lang: str) -> bool:
    named = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    than = language(lang).meaning.than
    if not language(lang).spaced:
        return re.search(rf"(?:{than})(?:{named})", text) is not None
    return re.search(rf"(?<![^\W\d_])(?:{than})\s(?:[^\W\d_A-Z]{{1,3}}\s)?(?:{named})", text) is not None


def _owns(text: str, forms: tuple[str, ...], lang: str) -> bool:
    """Return whether a text says that something is a name's."""
    forms = (*forms, *(form[:-1] for form in forms if form.endswith("s") and len(form) > _ENDING))
    named = rf"(?:[A-Z][a-z]+\s)?(?:{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))})"
    listed = "|".join(pattern.replace("{}", named) for pattern in language(lang).meaning.owner)
    return bool(re.search(rf"(?<![^\W\d_])(?:{listed})(?![^\W\d_])" if language(lang).spaced else listed, text))


def _order(text: str, forms: list[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return the names of a text in the order in which each stands first."""
    places = {name: _place(text, listed) for name, listed in forms}
    return sorted((name for name, place in places.items() if place is not None), key=lambda name: places[name] or 0)


def _place(text: str, forms: tuple[str, ...]) -> int | None:
    return next(iter(places_of(text, forms)), None)


def places_of(text: str, forms: tuple[str, ...]) -> list[int]:
    """Return where each mention of a name begins, in order."""
    if not forms:
        return []
    listed = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    pattern = rf"(?<![A-Za-z\u0410-\u044f\u0451])(?:{listed})s?(?![a-z\u0430-\u044f\u0451])"
    return [match.start() for match in re.finditer(pattern, text)]


def _candidates(original: str, source: str) -> list[str]:
    """Return the capitalised words of a text that name somebody or something, in order."""
    no_names = frozenset(language(source).meaning.not_names)
    words = dict.fromkeys(word for word in _CAPITALISED.findall(original) if word.lower() not in no_names)
    lower = frozenset(re.findall(r"(?<![^\W\d_])[a-z]+", original))
    named = [word for word in words if word.lower() not in lower and len(word) > 2]
    return [word for word in named if word.removesuffix("s") == word or word.removesuffix("s") not in named]


def _is_first_part(original: str, translated: str, word: str, named: list[str]) -> bool:
    """Return whether a name is always followed by the same other one in both texts: San of San Francisco."""
    pattern = re.compile(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])(?:\s([A-Z][a-zà-ÿ]+))?")
    behind = {*pattern.findall(original), *pattern.findall(translated)}
    return len(behind) == 1 and behind <= {*named} and pattern.search(translated) is not None


def _tells(name: Name, alike: Counter[str], is_spaced: bool) -> bool:
    """Return whether a name is told apart by its consonants, where its forms are transcribed (Amy, Эми; Los, 洛斯)."""
    sound = _consonants(name.original)
    return (is_spaced and len(sound) > 1) or alike[sound] == 1 or name.forms == (name.original,)


@cache
def _small_words(lang: str) -> frozenset[str]:
    """Return the words that begin sentences and name nobody."""
    identification = language(lang).identification
    return frozenset((*identification.small_words, *identification.tasks))


@cache
def _forms(translated: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_CAPITALISED.findall(translated)))


@cache
def _likeness(name: str, form: str, target: str) -> float:
    """Return how surely a word is a name's form, from 0 to 1."""
    if form == name:
        return 1.0
    if name == form + "s":
        return 0.9
    if form.isascii() and name.isascii() and form.startswith(name) and len(form) - len(name) <= 2:
        return 0.9
    mine, other = _consonants(name), _consonants(form)
    if language(target).script == "latin":
        same = unidecode(form).lower()[:2] == unidecode(name).lower()[:2] and len(mine) > 1
        return 0.7 if same and mine == other and abs(len(form) - len(name)) <= 2 else 0.0
    if form.isascii() or not mine or not other or len(form) > len(name) + _ENDING:
        return 0.0
    if other == mine or (mine[0] == "h" and other == "g" + mine[1:]):  # Harry is Гарри
        return 0.8 if len(mine) > 1 else 0.4 if abs(len(form) - len(name)) <= 2 else 0.0
    if len(mine) < 2:
        return 0.0
    if len(mine) > 2 and mine[1:] == other[1:] and {mine[0], other[0]} == {"j", "s"}:  # Cheryl is Шерил
        return 0.6
    endings = len(other) - len(mine)
    return 0.6 if 0 < endings <= 2 and other.startswith(mine) else 0.5 if len(mine) > 3 and _near(mine, other) else 0.0


def _near(mine: str, other: str) -> bool:
    """Return whether two runs of consonants differ in one."""
    if abs(len(mine) - len(other)) > 1:
        return False
    longer, shorter = (mine, other) if len(mine) >= len(other) else (other, mine)
    if len(longer) == len(shorter):
        return sum(a != b for a, b in zip(longer, shorter, strict=True)) == 1
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))


@cache
def _consonants(word: str) -> str:
    """Return the consonants of a word in Latin letters, doubled ones once, without h but at its beginning."""
    plain = unidecode(word).lower().replace("'", "").replace(" ", "")
    plain = re.sub(r"c(?=[eiy])", "s", plain)
    if word.isascii():
        plain = plain.replace("x", "ks")  # in transcribed characters x is an s
    for written, sound in _SOUNDS:
        plain = plain.replace(written, sound)
    if plain[:1] == "g" and plain[1:2] in "ei":
        plain = "j" + plain[1:]
    kept = plain[:1] + re.sub(r"[aeiouyh]", "", plain[1:])
    return re.sub(r"(.)\1+", r"\1", re.sub(r"^[aeiouy]", "", kept))


def _written(name: Name, translated: str, target: str, alike: Counter[str]) -> Name:
    """Add to a name how the target's language is known to write it, or transcribes it where words run together."""
    listed = language(target).meaning.names.get(name.original.lower(), ())
    known = [form for form in listed if form in translated]
    is_alone = alike[_consonants(name.original).translate(_LOOSE)] == 1
    if not known and not language(target).spaced and is_alone:
        known = _transcribed(name.original, translated, language(target).meaning.transcribing)
    return Name(name.original, tuple(dict.fromkeys((*name.forms, *known))))


def _transcribed(name: str, translated: str, signs: str) -> list[str]:
    """Return the run of characters used for names that sounds most like this one; none where nothing does."""
    sound = _consonants(name).translate(_LOOSE)
    if len(sound) < 2:
        return []
    runs = {
        run[at : at + size]
        for run in re.findall(rf"[{signs}·]{{2,}}", translated)
        for size in range(2, _LONGEST + 1)
        for at in range(len(run) - size + 1)
    }
    alike = [run for run in runs if _consonants(run).translate(_LOOSE) == sound]
    return [min(alike, key=lambda run: (-translated.count(run), len(run), run))] if alike else []
