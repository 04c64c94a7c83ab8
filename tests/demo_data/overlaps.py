"""Planted rows that say what another row says: near duplicates, near duplicates in conflict, and benchmark problems.

All texts are hand-written for this set; the benchmark is imaginary. Of a pair the first row stays, and its attempts
lie inside both bands.

Invariant: the figures of a pair are the same; a contaminated row holds a benchmark row's text, its typography changed,
a longer text around it, or its words with other figures.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from curation.records import DropReason
from flows.demo.report import KEEP
from tests.demo_data.items import Item
from tests.demo_data.rows import Planted, Row, in_band, row_of
from tests.demo_data.supply import Supply

Pair = tuple[str, str, str, int, str, str]

NEAR: tuple[Pair, ...] = (
    (
        "A baker fills 14 trays with 12 rolls each in the morning and sells 95 of them before noon. "
        "How many rolls are left for the afternoon?",
        "A baker fills 14 trays with 12 rolls each in the morning and sells 95 of them before lunch. "
        "How many rolls are left for the afternoon?",
        "14 * 12 - 95", 73, "en", "one word",
    ),
    (
        "Mira reads 18 pages of her book every evening from Monday to Friday, and 40 pages on Sunday. "
        "How many pages does she read in that week, if the week has 5 such evenings?",
        "Nora reads 18 pages of her book every evening from Monday to Friday, and 40 pages on Sunday. "
        "How many pages does she read in that week, if the week has 5 such evenings?",
        "18 * 5 + 40", 130, "en", "another name",
    ),
    (
        "A gardener plants 9 rows of 16 tulips, but a hail storm destroys 27 of the tulips during the first night. "
        "How many tulips are standing the next day?",
        "A gardener plants 9 rows of 16 tulips , but a hail storm destroys 27 of the tulips during the first night . "
        "How many tulips are still standing the next day ?",
        "9 * 16 - 27", 117, "en", "one word and typography",
    ),
    (
        "A cinema has 22 rows with 18 seats in each row, and 57 seats stay empty at the evening show. "
        "How many people watch the evening show?",
        "A cinema has 22 rows with 18 seats in each row, and 57 seats remain empty at the evening show. "
        "How many people watch the evening show?",
        "22 * 18 - 57", 339, "en", "one word",
    ),
    (
        "Each of 26 pupils in a class brings 15 cents for a postcard, and the teacher adds 60 cents of her own money. "
        "How many cents do they have together?",
        "EACH OF $26$ PUPILS IN A CLASS BRINGS $15$ CENTS FOR A POSTCARD, AND THE TEACHER ADDS $60$ CENTS OF HER OWN "
        "MONEY. HOW MANY CENTS DO THEY HAVE TOGETHER?",
        "26 * 15 + 60", 450, "en", "capitals and dollar signs",
    ),
    (
        "A cyclist rides 37 km on each of the first 4 days of a tour and 52 km on the last day of it. "
        "How long is the whole tour in km?",
        "A cyclist rides 37 km on each of the first four days of a tour and 52 km on the last day of it. "
        "How long is the whole tour, in km?",
        "37 * 4 + 52", 200, "en", "a number in words",
    ),
    (
        "Une bibliothèque reçoit 13 cartons de 24 livres chacun et donne 48 livres à une école du village. "
        "Combien de livres lui reste-t-il ?",
        "Une bibliothèque reçoit 13 cartons de 24 livres chacun et offre 48 livres à une école du village. "
        "Combien de livres lui reste-t-il ?",
        "13 * 24 - 48", 264, "fr", "one word",
    ),
    (
        "Ein Bauer verteilt 19 Säcke mit je 35 kg Kartoffeln auf seinem Wagen und verkauft 140 kg davon auf dem Markt. "
        "Wie viele kg bringt er wieder nach Hause?",
        "Ein Bauer verteilt 19 Säcke mit je 35 kg Kartoffeln auf seinem Wagen und verkauft 140 kg davon auf dem Markt. "
        "Wie viele kg bringt er zurück nach Hause?",
        "19 * 35 - 140", 525, "de", "one word",
    ),
    (
        "学校图书室有 8 个书架，每个书架放 45 本书，今天同学们一共借走了 76 本。图书室里现在还剩下几本书？",
        "学校图书室有 8 个书架，每个书架摆 45 本书，今天同学们一共借走了 76 本。图书室里现在还剩下几本书？",
        "8 * 45 - 76", 284, "zh", "one sign",
    ),
)  # fmt: skip

NEAR_CONFLICTS: tuple[Pair, ...] = (
    (
        "A farmer packs 17 boxes with 30 eggs each and finds that 22 eggs are broken when he counts them at home. "
        "How many eggs are whole?",
        "A farmer packs 17 boxes with 30 eggs each and finds that 22 eggs are broken when he checks them at home. "
        "How many eggs are whole?",
        "17 * 30 - 22", 488, "en", "532",
    ),
    (
        "A tailor buys 11 rolls of cloth, each 25 m long, and uses 68 m of the cloth for curtains in spring. "
        "How many m of cloth remain?",
        "A tailor buys 11 rolls of cloth, each 25 m long, and needs 68 m of the cloth for curtains in spring. "
        "How many m of cloth remain?",
        "11 * 25 - 68", 207, "en", "217",
    ),
    (
        "There are 6 shelves in the shed and each shelf holds 34 flower pots; on the floor stand another 29 pots. "
        "How many pots are in the shed?",
        "There are 6 shelves in the shed and each shelf carries 34 flower pots; on the floor stand another 29 pots. "
        "How many pots are in the shed?",
        "6 * 34 + 29", 233, "en", "204",
    ),
    (
        "A ferry crosses the lake 12 times a day with 85 passengers each time, and on Sunday it carries 130 more. "
        "How many passengers does it carry on Sunday?",
        "A ferry crosses the river 12 times a day with 85 passengers each time, and on Sunday it carries 130 more. "
        "How many passengers does it carry on Sunday?",
        "12 * 85 + 130", 1150, "en", "1020",
    ),
    (
        "A printer needs 3 minutes for each of the 28 pages of a report and 16 minutes for the colour cover. "
        "How many minutes does the report take?",
        "A printer needs 3 minutes for each of the 28 pages of a report and 16 minutes for the thick cover. "
        "How many minutes does the report take?",
        "3 * 28 + 16", 100, "en", "84",
    ),
    (
        "Un camion livre 21 caisses de 18 kg et reprend 64 kg de caisses vides chez le même client le lundi matin. "
        "De combien de kg sa charge diminue-t-elle ?",
        "Un camion livre 21 caisses de 18 kg et ramène 64 kg de caisses vides chez le même client le lundi matin. "
        "De combien de kg sa charge diminue-t-elle ?",
        "21 * 18 - 64", 314, "fr", "378",
    ),
    (
        "In einem Saal stehen 15 Reihen mit je 24 Stühlen, und 38 Stühle werden vor dem Konzert in den Keller "
        "gebracht. Wie viele Stühle bleiben im Saal?",
        "In einem Saal stehen 15 Reihen mit je 24 Stühlen, und 38 Stühle werden vor dem Konzert in den Hof "
        "gebracht. Wie viele Stühle bleiben im Saal?",
        "15 * 24 - 38", 322, "de", "398",
    ),
    (
        "Un panadero hornea 16 bandejas de 20 panes cada mañana y regala 45 panes a los vecinos de su calle. "
        "¿Cuántos panes le quedan para vender?",
        "Un panadero hornea 16 bandejas de 20 panes cada mañana y regala 45 panes a los amigos de su calle. "
        "¿Cuántos panes le quedan para vender?",
        "16 * 20 - 45", 275, "es", "320",
    ),
)  # fmt: skip

BENCHMARK: tuple[tuple[str, str], ...] = (
    ("A lighthouse keeper climbs 143 steps in the morning, 143 steps at noon and 143 steps at night, every single day "
     "of the week. How many steps does he climb in 7 days?", "3003"),
    ("Two tanks stand side by side in a brewery; the first holds 640 litres and the second holds a quarter less than "
     "the first. How many litres do both tanks hold when they are full?", "1120"),
    ("A tram leaves the depot with 36 passengers; at each of the next 5 stops 9 people get on and 4 people get off. "
     "How many passengers are in the tram after these stops?", "61"),
    ("A beekeeper sells 48 jars of honey for 7 euros each and 15 candles for 3 euros each at the village fair. "
     "How many euros does she take in altogether?", "381"),
    ("A rope of 96 metres is cut into pieces of 4 metres, and every third piece is painted red before it is sold. "
     "How many pieces are not painted?", "16"),
    ("The toll bridge charges 2 dollars for a motorcycle and 5 dollars for a car; on Friday 120 motorcycles and 310 "
     "cars cross it. How many dollars are collected on Friday?", "1790"),
    ("A choir of 54 singers stands on stage in rows of 9, and each row needs 2 microphones and 1 stand. "
     "How many microphones does the choir need?", "12"),
    ("An orchard has 25 apple trees in each of 8 rows, and a storm in autumn uproots one tree in every row. "
     "How many apple trees are left in the orchard?", "192"),
    ("Une horloge sonne une fois à chaque demi-heure et le nombre d'heures à chaque heure pleine, de midi à minuit. "
     "Combien de coups sonne-t-elle en tout ?", "91"),
    ("Ein Aquarium ist 80 cm lang, 35 cm breit und 40 cm hoch und wird bis zur Hälfte mit Wasser gefüllt. "
     "Wie viele Liter Wasser sind darin?", "56"),
)  # fmt: skip
"""An imaginary benchmark: problem and answer."""

CONTAMINATED: tuple[tuple[str, str, str, str], ...] = (
    (BENCHMARK[0][0], "3003", "en", "the same text"),
    (BENCHMARK[1][0].upper(), "1120", "en", "in capitals"),
    (BENCHMARK[2][0].replace(" ", "  "), "61", "en", "other spaces"),
    (f"It is market day. {BENCHMARK[3][0]} Count her takings only.", "381", "en", "a longer text around it"),
    (BENCHMARK[4][0].replace("96", "$96$").replace(",", " ,"), "16", "en", "other typography"),
    (
        "The toll bridge charges 3 dollars for a motorcycle and 6 dollars for a car; on Friday 80 motorcycles and 150 "
        "cars cross it. How many dollars are collected on Friday?", "1140", "en", "other figures",
    ),
    (
        "A choir of 72 singers stands on stage in rows of 8, and each row needs 3 microphones and 1 stand. "
        "How many microphones does the choir need?", "27", "en", "other figures",
    ),
    (
        "An orchard has 30 apple trees in each of 6 rows, and a storm in autumn uproots one tree in every row. "
        "How many apple trees are left in the orchard?", "174", "en", "other figures",
    ),
    (BENCHMARK[8][0].replace("une fois", "un coup"), "91", "fr", "a few words"),
    (f"{BENCHMARK[9][0]} Gib nur die Zahl an.", "56", "de", "a longer text around it"),
)  # fmt: skip


def near_duplicate_rows(s: Supply) -> list[Row]:
    """Return pairs of near duplicates: the first stays, the second goes, into the queue where references differ."""
    rows = []
    for number, (first, second, setup, answer, lang, note) in enumerate(NEAR):
        planted = Planted("near_duplicate", DropReason.NEAR_DUPLICATE, "near_dedup", note)
        rows += _pair(s, f"near {number}", first, second, setup, answer, lang, planted, str(answer))
    for number, (first, second, setup, answer, lang, other) in enumerate(NEAR_CONFLICTS):
        note = f"the row that stays has {answer}"
        planted = Planted("near_conflict", DropReason.CONFLICTING_ANSWERS, "near_dedup", note)
        rows += _pair(s, f"near conflict {number}", first, second, setup, answer, lang, planted, other)
    return rows


def _pair(
    s: Supply,
    pair: str,
    first: str,
    second: str,
    setup: str,
    answer: int,
    lang: str,
    planted: Planted,
    reference: str,
) -> list[Row]:
    item = Item(first, Fraction(answer), setup, "story", 2, lang)
    s.reserve(first)
    s.reserve(second)
    stays = row_of(item, in_band(s.dice, item), Planted("near_keeper", KEEP, "near_dedup", planted.kind))
    goes = Row(second, reference, item.worked, None, "story", 2, lang, planted)
    return [replace(stays, pair=pair), replace(goes, pair=pair)]


def contaminated_rows() -> list[Row]:
    """Return problems of the imaginary benchmark, as they are or changed a little."""
    reason = DropReason.CONTAMINATED
    return [
        Row(question, answer, "", None, "story", 2, lang, Planted("contaminated", reason, "decontamination", note))
        for question, answer, lang, note in CONTAMINATED
    ]


def benchmark_lines() -> list[dict[str, Any]]:
    """Return the imaginary benchmark as it is shipped."""
    return [
        {"id": f"b{number:02d}", "problem": problem, "answer": answer}
        for number, (problem, answer) in enumerate(BENCHMARK)
    ]
