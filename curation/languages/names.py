"""Codes of the paper's languages, and English names of all."""

from __future__ import annotations

LANGUAGES = ("en", "fr", "es", "it", "de", "zh", "ru")
"""The paper's languages: English, and the six targets of translation."""

_NAMES = """
af Afrikaans, am Amharic, an Aragonese, ar Arabic, as Assamese, av Avar, az Azerbaijani, ba Bashkir, be Belarusian,
bg Bulgarian, bn Bengali, bo Tibetan, br Breton, bs Bosnian, ca Catalan, ce Chechen, co Corsican, cs Czech, cv Chuvash,
cy Welsh, da Danish, de German, dv Dhivehi, el Greek, en English, eo Esperanto, es Spanish, et Estonian, eu Basque,
fa Persian, fi Finnish, fr French, fy West Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gu Gujarati,
gv Manx, he Hebrew, hi Hindi, hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian, ia Interlingua, id Indonesian,
ie Interlingue, io Ido, is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian, kk Kazakh, km Khmer,
kn Kannada, ko Korean, ku Kurdish, kv Komi, kw Cornish, ky Kyrgyz, la Latin, lb Luxembourgish, li Limburgish, lo Lao,
lt Lithuanian, lv Latvian, mg Malagasy, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese,
my Burmese, ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, oc Occitan, or Odia, os Ossetian, pa Punjabi,
pl Polish, ps Pashto, pt Portuguese, qu Quechua, rm Romansh, ro Romanian, ru Russian, sa Sanskrit, sc Sardinian,
sd Sindhi, si Sinhala, sk Slovak, sl Slovenian, so Somali, sq Albanian, sr Serbian, su Sundanese, sv Swedish,
sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, tk Turkmen, tl Tagalog, tr Turkish, tt Tatar, ug Uyghur,
uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, vo Volapük, wa Walloon, yi Yiddish, yo Yoruba,
zh Chinese (simplified characters)
"""

NAMES = dict(entry.split(" ", 1) for entry in _NAMES.strip().replace("\n", " ").split(", "))
