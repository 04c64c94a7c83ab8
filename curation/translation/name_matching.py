"""Which words of a translation are which names of its original, in whatever script.

A name is a capitalised word of the original that the translation has too: as it is, with an ending of its own, or
transcribed. Words in Cyrillic are parted by their stems, and names and stems paired so that each has the one that
sounds most like it (`name_sounds`); where two pairings fit as well, neither is believed. One name and one stem that
are left over are each other's, where they come as often. In Chinese, consonants are compared, in classes of sounds that
a transcription does not keep apart (珍妮特, Janet).

Invariants: pure functions. A name that is not found again says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache

from text_unidecode import unidecode

from curation.languages.vocabulary import language
from curation.translation.name_sounds import stem, unlike
from curation.translation.word_pairs import stem as stem_of_word
from curation.translation.word_pairs import word_pairs

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
_LONGEST = 6
"""Characters of the longest transcribed name that is looked for."""
_SURE, _FARTHEST, _LEFT_OVER = 0.1, 0.26, 0.5
"""How unlike a word may sound that is a name's further form, a name's form, the last form for the last name."""
_MARGIN = 0.12
"""How much better a pairing of two names must be than the other one."""
_LEARNT = 0.6
"""Share of its sentences in which a learnt form must stand with its name."""
_FIRST_WORD = 0.08
"""What a word costs that begins sentences only."""


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
    candidates = _told_apart(original, translated if language(target).spaced else original, words)
    if len(candidates) < 2:
        return []
    is_spaced = language(target).spaced
    if is_spaced and language(target).script != "latin":
        names = _by_sound(candidates, translated, target)
        return [name for name in names if name.forms and not _is_title(name, translated)]
    taken: dict[str, str] = {}
    small = _small_words(target)
    for form in (form for form in _forms(translated) if form in candidates or form.lower() not in small):
        best = max(candidates, key=lambda name: (_likeness(name, form), -len(name)))
        if _likeness(best, form) > 0:
            taken[form] = best
    names = [Name(name, tuple(form for form, of in taken.items() if of == name)) for name in candidates]
    short = Counter(_consonants(name) for name in candidates)
    names = [name if _tells(name, short, is_spaced) else Name(name.original, ()) for name in names]
    loose = Counter(_consonants(name).translate(_LOOSE) for name in candidates)
    names = [_written(name, translated, target, loose) for name in names]
    apart = _apart(names, translated, target, loose)
    return [name for name in apart if name.forms and not _is_title(name, translated)]


def _is_title(name: Name, translated: str) -> bool:
    """Return whether a name stands in quotation marks wherever it is mentioned: карточки «Эйс» are no person."""
    forms = "|".join(re.escape(form) for form in name.forms)
    mentions = re.findall(rf"([«„“\"《「]?)(?:{forms})", translated)
    return bool(mentions) and all(mentions)


def _by_sound(candidates: list[str], translated: str, target: str) -> list[Name]:
    """Return the names with the words in another spaced script that sound like them, in every case."""
    forms = {name: [name] for name in candidates if re.search(rf"(?<!\w){name}(?!\w)", translated)}
    listed = language(target).meaning.names
    for name in candidates:
        known = [form for form in listed.get(name.lower(), ()) if re.search(rf"(?<!\w){form}(?!\w)", translated)]
        forms.setdefault(name, known) if known else None
    open_names = [name for name in candidates if name not in forms]
    used = {form for words in forms.values() for form in words}
    groups: dict[str, list[str]] = {}
    small = _small_words(target)
    for form in _forms(translated):
        if form not in used and not form.isascii() and form.lower() not in small and not _is_common(form, translated):
            groups.setdefault(stem(form), []).append(form)
    costs = {
        (name, key): min(unlike(name, form) for form in words) + (0.0 if _inside(words, translated) else _FIRST_WORD)
        for name in candidates
        for key, words in groups.items()
    }
    paired = _paired(open_names, costs)
    for name, key in paired.items():
        forms[name] = groups[key]
    _add_last(forms, open_names, groups, costs, translated)
    for key, words in groups.items():  # the same name, with another stem: Павел, Павла
        near = [name for name in candidates if costs[name, key] <= _SURE]
        if len(near) == 1 and all(words is not taken for taken in forms.values()):
            forms[near[0]] = [*forms.get(near[0], []), *words]
    return [Name(name, tuple(forms.get(name, ()))) for name in candidates]


def _paired(names: list[str], costs: dict[tuple[str, str], float]) -> dict[str, str]:
    """Return a stem for each name, the most alike first; none for two names whose stems could as well be exchanged."""
    paired: dict[str, str] = {}
    for (name, key), cost in sorted(costs.items(), key=lambda item: item[1]):
        if cost <= _FARTHEST and name in names and name not in paired and key not in paired.values():
            paired[name] = key
    doubtful: set[str] = set()
    for name, key in paired.items():
        for other in names:
            other_key = paired.get(other)
            if other == name:
                continue
            here = costs[name, key] + (costs[other, other_key] if other_key else _FARTHEST)
            there = costs[other, key] + (costs[name, other_key] if other_key else _FARTHEST)
            if there - here < _MARGIN:
                doubtful |= {name, other}
    return {name: key for name, key in paired.items() if name not in doubtful}


def _add_last(
    forms: dict[str, list[str]],
    names: list[str],
    groups: dict[str, list[str]],
    costs: dict[tuple[str, str], float],
    translated: str,
) -> None:
    """Give the one name that is left the one stem that is left, where it is not quite unlike."""
    left = [name for name in names if name not in forms]
    keys = [
        key
        for key, words in groups.items()
        if all(words is not taken for taken in forms.values()) and _inside(words, translated)
    ]
    if len(left) == len(keys) == 1 and costs[left[0], keys[0]] <= _LEFT_OVER:
        forms[left[0]] = groups[keys[0]]


def _is_common(form: str, text: str) -> bool:
    """Return whether a capitalised word stands in a text in small letters, too."""
    return re.search(rf"(?<!\w){form.lower()}(?!\w)", text) is not None


def _inside(forms: list[str], text: str) -> bool:
    """Return whether a word stands with a capital inside a sentence, where only names do."""
    return re.search(rf"(?<=[\w,«„\"(] )(?:{'|'.join(forms)})(?!\w)", text) is not None


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


def _candidates(original: str, source: str) -> list[str]:
    """Return the capitalised words of a text that name somebody or something, in order."""
    no_names = frozenset(language(source).meaning.not_names)
    words = dict.fromkeys(word for word in _CAPITALISED.findall(original) if word.lower() not in no_names)
    lower = frozenset(re.findall(r"(?<![^\W\d_])[a-z]+", original))
    named = [
        word for word in words if len(word) > 2 and (word.lower() not in lower or _inside([word], original))
    ]  # Will, who will
    return [word for word in named if word.removesuffix("s") == word or word.removesuffix("s") not in named]


def _told_apart(original: str, translated: str, words: list[str]) -> list[str]:
    """Return names without words that tell nothing: San of San Francisco, Orchard of Moonglow and Sunshine Orchard."""
    behind = {word: _follower(original, translated, word, words) for word in words}
    shared = {one for one, count in Counter(behind.values()).items() if one and count > 1}
    return [word for word in words if word not in shared and (not behind[word] or behind[word] in shared)]


def _follower(original: str, translated: str, word: str, named: list[str]) -> str:
    """Return the name that always follows another one in both texts: Francisco behind San; empty where none does."""
    pattern = re.compile(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])(?:\s([A-Z][a-zà-ÿ]+))?")
    behind = {*pattern.findall(original), *pattern.findall(translated)}
    is_first = len(behind) == 1 and behind <= {*named} and pattern.search(translated) is not None
    return behind.pop() if is_first else ""


def _tells(name: Name, alike: Counter[str], is_spaced: bool) -> bool:
    """Return whether a name is told apart by its consonants, where its forms are transcribed (Amy, Эми; Los, 洛斯)."""
    sound = _consonants(name.original)
    return (is_spaced and len(sound) > 1) or alike[sound] == 1 or name.forms == (name.original,)


@cache
def _small_words(lang: str) -> frozenset[str]:
    """Return the words that begin sentences and name nobody."""
    identification = language(lang).identification
    return frozenset((*identification.small_words, *identification.tasks))


@lru_cache(maxsize=256)
def _forms(translated: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_CAPITALISED.findall(translated)))


@cache
def _likeness(name: str, form: str) -> float:
    """Return how surely a word is a name's form, from 0 to 1."""
    if form == name:
        return 1.0
    if name == form + "s":
        return 0.9
    if form.isascii() and name.isascii() and form.startswith(name) and len(form) - len(name) <= 2:
        return 0.9
    mine, other = _consonants(name), _consonants(form)
    same = unidecode(form).lower()[:2] == unidecode(name).lower()[:2] and len(mine) > 1
    return 0.7 if same and mine == other and abs(len(form) - len(name)) <= 2 else 0.0


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
    known = [form for form in (*listed, *_learnt(name.original, target)) if form in translated]
    is_alone = alike[_consonants(name.original).translate(_LOOSE)] == 1
    if not known and not language(target).spaced and is_alone:
        known = _transcribed(name.original, _without_words(translated, target), language(target).meaning.transcribing)
    return Name(name.original, tuple(dict.fromkeys((*name.forms, *known))))


def _learnt(name: str, target: str) -> list[str]:
    """Return the surest learnt form of a name where words run together."""
    if language(target).spaced:
        return []
    said = word_pairs(target).get(stem_of_word(name), {})
    return [form for form, share in said.items() if share >= _LEARNT and len(form) > 1][:1]


def _without_words(text: str, lang: str) -> str:
    """Return a text without the words of a language whose characters are also those of names: 如果 is no name."""
    return re.sub("|".join(map(re.escape, language(lang).meaning.not_names)) or r"(?!)", "，", text)


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
