"""What the rules look for, per language: the regular expressions, named and with what they mean.

Rust syntax (no look-around). Where a phrase fires only out of certain company, the company is named in a
``…_HARMLESS`` expression, which is blanked out before the phrase is looked for.
Languages: en, fr, es, it, de, zh, ru; all are tried on every row, since a row's tag may be wrong.
"""

from __future__ import annotations

import re

LETTERS = "A-Za-zÀ-ɏЀ-ӿ"
"""The letters of six of the seven languages, as the inside of a class."""


def either(*patterns: str) -> str:
    """One case-insensitive expression out of several, made cheap.

    Word boundaries become ASCII ones, since the Unicode ones cost a factor of ten on texts that are not plain ASCII;
    so none may stand beside an accented letter, and in expressions with Cyrillic letters they are left out.
    Classes lose their rare members, since an expression is compiled anew for every small frame.
    """
    return "(?i)(?:" + "|".join(cheap(pattern) for pattern in patterns) + ")"


_WITH_BOUNDARY = re.compile("[\u0400-\u04ff]")
_TOKEN = re.compile(r"\(\?-u:\\b\)|\[\\s\\S\]|\\(?:[xp]\{\w+\}|.)|\[\^?(?:\\p\{\w+\}|\\.|[^\]\\])+\]|.", re.DOTALL)
_SHORT = {"\\w": f"0-9_{LETTERS}", "\\d": "0-9"}


def cheap(pattern: str) -> str:
    """The same expression with classes that compile fast: few ranges, and no case folding of what has no case.

    ``\\w`` and ``\\d`` mean the letters and digits of the seven languages' own alphabets, hanzi aside.
    """
    boundary = "" if _WITH_BOUNDARY.search(pattern) else r"(?-u:\b)"

    def plain(found: re.Match[str]) -> str:
        token = found.group()
        if token in ("\\b", r"(?-u:\b)"):
            return boundary
        if token == r"[\s\S]":
            return "(?s-i:.)"
        if token in _SHORT:
            return f"[{_SHORT[token]}]"
        if token in (r"\W", r"\D"):
            return f"(?-i:[^{_SHORT[token.lower()]}])"
        if token in (r"\S", "."):
            return f"(?-i:{token})"
        if token.startswith("[") and len(token) > 1:
            inside = re.sub(r"\\[wd]", lambda short: _SHORT[short.group()], token)
            caseless = token.startswith("[^") and not re.search("[A-Za-z]", re.sub(r"\\p\{\w+\}|\\.", "", token))
            return f"(?-i:{inside})" if caseless else inside
        return token

    return _TOKEN.sub(plain, pattern)


# --- proof -----------------------------------------------------------------------------------------------------------

PROOF_NEEDLES = [
    "prov", "show", "verify", "demonstrat", "justif", "explain", "sketch", "construct", "derive", "deduce", "draw",
    "证", "説明理由", "说明理由", "作图", "画出", "推导", "尺规", "作法", "請證", "證明",
    "montr", "démontr", "expliqu", "déduire", "constru", "trace",
    "demuestr", "prueb", "mostrar", "demostrar", "probar", "muestr", "justifi", "expliqu", "deducir",
    "dimostr", "mostra", "provare", "prova", "spieg", "giustific",
    "zeig", "beweis", "weis", "begründ", "erklär", "skizz", "konstrui", "leiten",
    "каж", "обосну", "объясни", "построй", "постройте", "выведите", "изобразите",
]  # fmt: skip

# "can be shown that", "she wants to show that", "studies show that", "to prove his point"
PROOF_HARMLESS = either(
    r"\b(?:can|could|may|might|would|will|did|does|do|did not|cannot|we|they|he|she|it|i|which|who|records?|results?"
    r"|data|tests?|stud(?:y|ies)|surveys?|calculations?|experts?|scientists?)\s+(?:be\s+|not\s+|easily\s+|now\s+)*"
    r"(?:prove|show|verify|explain|derive|draw|sketch|construct)[nsd]?\b",
    r"\b(?:wants?|wanted|trying|tries|tried|likes?|need(?:s|ed)?|decided?s?|asked|going|hopes?|hoped|able|used|helps?"
    r"|learn(?:s|ed)?|chance|order|time|how|likely|taught|teacher)\s+(?:\w+\s+)?to\s+"
    r"(?:prove|show|verify|explain|derive|draw|sketch|construct)\b",
    r"\b(?:show|prove|explain)\s+(?:your|all|his|her|their|the\s+(?:steps|work(?:ing)?))\s*(?:work(?:ing)?|steps"
    r"|reasoning|calculations?)?",
    r"\bwithout\s+proof\b",
    r"\b(?:a|an|the|this|that|another|tv|each|every|one|favou?rite|talk|new|first|second|last|stage|fashion|his"
    r"|her|their)\s+show\b",
    r"\b(?:la|una|esta|otra|cada|su|di|de)\s+(?:prueba|prova)\b",
    r"\b(?:no|not)\s+(?:need|required?|necessary)\s+to\s+(?:prove|show|explain|justify)\b",
    r"(?:可以|可|能|能够|已|已经|被|不必|无需|不需要?|不用|容易|易|曾|人们?|学?家|他|她)(?:被)?(?:证明|证得|证)",
    r"证明了|证明过?的|证明书|身份证|准考证|保证|验证码|学生证|证券|证件|证书|公证|证据|论证了|印证|见证|例证",
    r"(?:可以|能|能够)推导",
    r"on (?:peut|pourra|sait) (?:d[ée])?montrer",
    r"se (?:puede|sabe|ha) (?:demostrar|probar|mostrar)",
    r"si (?:può|sa) (?:di)?mostrare",
    r"(?:можно|легко|нетрудно) (?:показать|доказать)",
    r"(?:kann|lässt|läßt) (?:man|sich) (?:leicht )?(?:zeigen|beweisen)",
)

PROOF = either(
    # en
    r"\b(?:dis)?prov(?:e|ing)\b(?:\s+or\s+disprove)?(?:\s+(?:that|the|this|by|it|or|why|if|whether|for|each|any"
    r"|\$|there|\\))?",
    r"\bshow\s+(?:that|why|also|,|how\s+(?:to|that)|by|there|it\s+is|\$|\\|the\s+following"
    r"|(?:the\s+)?(?:existence|inequality|identity|equality))",
    r"(?:^|[.;:!?,\n$)\]]\s*|\b(?:and|then|also|please|hence|now)\s+)(?:verify|demonstrate|deduce|derive|justify"
    r"|establish)\s+(?:that|the|why|if|whether)\b",
    r"(?:^|[.;:!?\n)\]]\s*|\b(?:and|then|also|please)\s+)explain\s+(?:why|how|what|whether|the|in"
    r"|your\s+answer\s+fully)\b",
    r"(?:^|[.;:!?\n)\]]\s*|\b(?:and|then|also|please)\s+)(?:sketch|draw|plot|graph)\s+(?:the|a|an|and|in|on|each"
    r"|both|its|this)\b",
    r"(?:^|[.;:!?\n)\]]\s*|\b(?:then|please)\s+)construct\s+(?:a|an|the|with|two|three|\$|such|explicitly|using"
    r"|points?)\b",
    r"\bgive\s+(?:a|an|another|two)\s+(?:\w+\s+){0,2}(?:proof|counter-?example)\b",
    r"\bderive\s+that\b",
    # zh
    r"证明|求证|试证|求證|證明|[请再先后并]证|^证[:：]",
    r"(?:请|试|并|且)?(?:说明|简述|阐述|解释)(?:你的)?(?:理由|原因|道理)|解释.{0,12}(?:含义|意义|为什么|原因)",
    r"尺规作图|作图题|写出作法|画出.{0,30}(?:图|示意)|作出.{0,20}图[象像形]|推导.{0,20}(?:公式|关系|过程)",
    # fr
    r"\b(?:dé)?montre[zr]?\s*(?:,|:|que\b|qu'|l'|la\b|les\b|\$)|\bprouve[zr]?\s*(?:,|:|que\b|qu'|\$)",
    r"\bexplique[zr]\s+pourquoi\b|\bjustifie[zr]\s+que\b|\bdémonstration\s+de\b",
    # es
    r"\bdemu[eé]str[ea](?:n|se)?\b|\bdemostrar\s+que\b|\bprueb[ea]\s+que\b|\bpru[eé]bese\b|\bprobar\s+que\b"
    r"|\bmu[eé]str[ea](?:se)?\s+que\b",
    r"\bmostrar\s+que\b|\bexpli(?:ca|que)\s+por\s+qué\b|\bjustifi(?:ca|que)\s+(?:que|por)\b|\bverifi(?:ca|que)\s+que\b",
    # it
    r"\bdimostr(?:a|i|are|ate|iamo|ino)\s*(?:,|:|che\b|la\b|il\b|l'|\$)|\bsi\s+dimostri\b|\b(?:pro?va(?:re|te)?"
    r"|mostra(?:re|te)?|mostri)\s+che\b",
    r"\bspiega(?:re|te)?\s+perch[éè]|\bgiustifica(?:re|te)?\b",
    # de
    r"\b(?:man\s+)?(?:zeige|beweise)n?(?:\s+sie)?\s*(?:,|:|dass\b|daß\b|die\b|den\b|das\b|folgende|\$)|\bweis(?:e"
    r"|en)\s+(?:sie\s+)?nach\b",
    r"\bbegründen?\s+(?:sie\b)?|\berkläre?n?\s+(?:sie\s*)?,?\s*warum\b|\bskizzieren?\s+sie\b"
    r"|\bkonstruieren?\s+sie\b|\bist\s+zu\s+(?:zeigen|beweisen)\b",
    # ru
    r"докажи(?:те)?|доказать|докажем|(?:покажи(?:те)?|показать)\s*,?\s*что|обосну(?:йте|й|ите)\b"
    r"|объясните\s*,?\s*(?:почему|как)",
    r"постройте\s+(?:график|эскиз|циркул|треугольник|окружность|точк|прям)|изобразите\b|выведите\s+формул",
)  # fmt: skip

# A value asked for beside a proof: with a short answer at hand, that part can be verified.
ASKS_A_VALUE = either(
    r"\b(?:find|determine|compute|calculate|evaluate)\b|\bwhat\s+(?:is|are)\b|\bhow\s+(?:many|much)\b",
    r"求(?:[^证證]|$)|确定|计算|多少",
    r"\b(?:trouve[zr]|détermine[zr]|calcule[zr]|hall[ae]r?|encuentr[ae]|determin[ae]r?|calcul[ae]r?|trova(?:re"
    r"|te)?|determinare|calcola(?:re)?|finden?|bestimmen?|berechnen?)\b",
    r"найдите|найти|определите|вычислите",
)

# Tasks whose whole content is the argument when no reference answer comes with them.
OPEN_ENDED = either(
    r"\b(?:find|determine|describe|characteri[sz]e|decide|identify)\s+(?:,?\s*with\s+proof,?\s*)?(?:all|every"
    r"|whether|if|for\s+which|those)\b",
    r"\bprove\b",
    r"求(?:出)?(?:所有|一切|全部)|确定(?:所有|一切|是否)|是否存在",
    r"\b(?:trouve[zr]|détermine[zr])\s+(?:tou(?:s|tes)|si)\b|\b(?:halla[r]?|hallar|encuentr[ae]n?"
    r"|determin[ae]r?)\s+(?:todos|todas|si)\b",
    r"\b(?:trova|trovare|determina|determinare)\s+(?:tutt[ie]|se)\b|\b(?:finden?|bestimmen?)\s+(?:sie\s+)?(?:alle"
    r"|ob)\b",
    r"(?:найдите|найти|определите)\s+все",
)  # fmt: skip

# The same for a task stated in formulas: an olympiad's "Determine the smallest n such that …" that came without a
# result is worth its argument only. Word problems without an answer stay under missing_answer.
FORMULA = r"\$[^$]*(?:\\[a-zA-Z]|\^|_|[a-z]\s*[=<>+])[^$]*\$|\\\(|\\\["
FORMAL_TASK = either(
    r"\b(?:find|determine|solve|give\s+the|for\s+(?:what|which)|what\s+is\s+the\s+(?:minimum|maximum|smallest"
    r"|largest|least|greatest)(?:\s+possible)?\s+(?:value|number)|what\s+is\s+\$)",
    r"求|确定|trouve[zr]|détermine[zr]|hall[ae]r?|determin[ae]r?|encuentr[ae]|trova(?:re|te)?|bestimmen?|finden?",
    r"найдите|определите|решите",
)

# Columns of the source that hold a marking scheme or a formal theorem in place of an answer.
MARKING = (
    r"(?i)\"(?:grading[ _]?(?:guidelines|scheme)|rubrics?|marking[ _]scheme|formal(?:_statement|_theorem)?"
    r"|lean4?(?:_code|_statement)?|informal_proof)\\?\""
)
