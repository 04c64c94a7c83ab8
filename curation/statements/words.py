"""What the rules look for, per language: the regular expressions, named and with what they mean.

Rust syntax (no look-around). Where a phrase fires only out of certain company, the company is named in a
``…_HARMLESS`` expression, which is blanked out before the phrase is looked for.
Languages: en, fr, es, it, de, zh, ru; all are tried on every row, since a row's tag may be wrong.
"""

from __future__ import annotations

import re


def either(*patterns: str) -> str:
    """One case-insensitive expression out of several.

    Word boundaries become ASCII ones, since the Unicode ones cost a factor of ten on texts that are not plain ASCII;
    so none may stand beside an accented letter, and in expressions with Cyrillic letters they are left out.
    """
    return "(?i)(?:" + "|".join(_ascii_bounded(pattern) for pattern in patterns) + ")"


def _ascii_bounded(pattern: str) -> str:
    """The expression with ASCII word boundaries; an escaped backslash before a b is left alone."""
    boundary = "" if re.search("[\u0400-\u04ff]", pattern) else r"(?-u:\b)"
    return re.sub(r"(\\\\)|\\b", lambda found: found.group(1) or boundary, pattern.replace(r"(?-u:\b)", r"\b"))


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

# --- figures ---------------------------------------------------------------------------------------------------------

FIGURE_NEEDLES = [
    "figure", "diagram", "picture", "shown", "image", "![", "[asy]", "<img", "includegraphics", "tikz", "chart",
    "graph", "table below", "table above", "following table", "pictured", "illustrat", "depicted", "drawing",
    "图", "圖", "下表", "上表", "右表", "表所示", "schéma", "ci-contre", "ci-dessous", "figura", "gráfic", "grafic",
    "tabla", "tabella", "mostra", "muestra", "abbildung", "skizze", "zeichnung", "bild", "tabelle",
    "рисун", "рис.", "чертеж", "чертёж", "диаграмм", "схем", "изображ", "tableau",
]  # fmt: skip

FIGURE = either(
    r"!\[[^\]]*\]\([^)]*\)|!\[\]|\[asy\]|<img\b|\\includegraphics|\\begin\{tikzpicture\}|\[(?:image|figure"
    r"|diagram|图片?)\s*\d*\]|<(?:image|figure)[^>]{0,20}>",
    # en
    r"\b(?:see|in|on|from|by)\s+(?:the|this)\s+(?:(?:following|above|below|given|adjoining|accompanying|attached"
    r"|left|right|bottom|top)\s+)*"
    r"(?:figures?|diagrams?|pictograph|bar\s+(?:graph|chart)|pie\s+chart|line\s+graph|histogram|scatter\s?plot"
    r"|venn\s+diagram)\b",
    r"\b(?:see|in)\s+(?:the|this)\s+(?:(?:following|above|below|given|adjoining|accompanying"
    r"|attached)\s+)*(?:picture|image|illustration|sketch|drawing)\b",
    r"\b(?:figure|diagram|picture|image|illustration|graph|chart|drawing|map|sketch|grid|table)s?\s+(?:\d+\s+"
    r"|\(?[a-d]\)?\s+)?(?:(?:is|are|was|as)\s+)?(?:shown|below|above|to\s+the\s+(?:right|left)"
    r"|at\s+(?:the\s+)?(?:right|left)|on\s+the\s+(?:right|left)|depicted|pictured|(?:shows|illustrates|depicts"
    r"|displays|represents)\b)",
    r"\b(?:following|above|below|adjoining|accompanying|attached)\s+(?:figure|diagram|picture|image|illustration"
    r"|graph|chart|drawing)s?\b",
    r"\b(?:as\s+)?(?:shown|pictured|illustrated|depicted|drawn)\s+(?:in\s+the\s+(?:figure|diagram|picture|image"
    r"|graph|chart|table|map|drawing|sketch|illustration|grid)|(?:below|above|at\s+(?:the\s+)?(?:right|left)"
    r"|to\s+the\s+(?:right|left)|on\s+the\s+(?:right|left)))",
    r"\bas\s+(?:shown|pictured|illustrated|depicted)\s*[.,;)?]",
    r"\b(?:see|in|from)\s+fig(?:ure|\.)\s*\d+|\(fig(?:ure|\.)?\s*\d*\)|\bthe\s+(?:shaded|unshaded)\s+(?:region"
    r"|area|part|portion)\s+(?:shown|below|above|in\s+the\s+(?:figure|diagram))",
    r"\baccording\s+to\s+the\s+(?:figure|diagram|picture|graph|chart|table)\b|\bthe\s+(?:table|graph"
    r"|chart)\s+(?:below|above)\b|\bhow\s+many\s+\w+\s+(?:are|is)\s+(?:there\s+)?in\s+(?:the|this)\s+(?:picture"
    r"|figure|diagram)\b",
    # zh
    r"如.{0,4}[图圖](?:所?示|[0-9１-９一二三甲乙]|[，,。．：:；;）)]|\s|$|中|是|，)|如[图圖]",
    r"[下右左上附][图圖](?:[所是为中，,。．）)：:的]|\s|$)|[图圖](?:[0-9１２３]|\$+\d\$+|[①②③])(?:所示|中|是)|见[图圖]|[图圖]示|[如见下右上附]表(?:所示"
    r"|[：:，,中是为给])|[看由从据]图|[图圖]中|示意图如|统计图(?:如|中|所)|阴影部分",
    # fr
    r"\b(?:sur|dans|voir|selon)\s+(?:la|le|cette|ce)\s+(?:figure|schéma|diagramme|graphique|dessin)\b(?:\s+(?:ci-"
    r"|suivant|donn))?|(?:figure|schéma|graphique|tableau|dessin)\s+(?:ci-contre|ci-dessous|ci-dessus|suivante?)",
    # es
    r"\b(?:en|ver|de|según)\s+(?:la|el)\s+(?:figura|diagrama|dibujo|imagen|gráfic[oa])\b"
    r"|\bla\s+figura\s+(?:muestra|siguiente|adjunta)|como\s+se\s+(?:muestra|ve|observa)\s+en\b"
    r"|siguiente\s+(?:figura|gráfic[oa]|diagrama|tabla)",
    # it
    r"\b(?:in|nella|dalla|vedi|nel)\s+(?:la\s+)?(?:figura|diagramma|disegno)\b(?:\s+(?:a\s+fianco|seguente"
    r"|sotto))?|\bla\s+figura\s+(?:mostra|seguente|a\s+lato)|come\s+(?:mostrato|indicato|illustrato)\s+(?:in"
    r"|nella|nel)\b",
    # de
    r"\b(?:in|siehe|auf|aus)\s+(?:der|die|dem)?\s*(?:nebenstehenden|folgenden|obigen)?\s*(?:abbildung|skizze"
    r"|zeichnung|figur|diagramm)\b|(?:abbildung|skizze|diagramm|tabelle)\s+(?:zeigt|unten|rechts)"
    r"|wie\s+(?:in\s+der\s+)?(?:abgebildet|dargestellt|gezeigt)\b",
    # ru
    r"на\s+(?:рисунк\w+|рис\.|чертеже|диаграмме|схеме|картинке|графике\s+(?:ниже|показан|изображ))|(?:см"
    r"|на)\.?\s*рис(?:\.|ун)|изображ[её]н\w*\s+на|как\s+показано|(?:рисунок|таблица)\s+(?:ниже|справа|слева)",
)  # fmt: skip

# "the picture of", graphs as objects, figures as numbers, three-dimensional figures, plots that are described in words
FIGURE_HARMLESS = either(
    r"\bin\s+the\s+(?:graph|picture|image)\s+(?:of|\$|theor)",
    r"\bthe\s+(?:image|picture)\s+of\b",
    r"(?:图象|图像|图形|图书|地图|图案|意图|企图|图纸|版图|画图|试图|力图|图论|图谱|图章|构图|图表示)(?:馆|室)?",
)

# --- references to elsewhere -----------------------------------------------------------------------------------------

ELSEWHERE_NEEDLES = [
    "previous", "preceding", "problem", "exercise", "theorem", "lemma", "proposition", "corollary", "example",
    "section", "chapter", "equation (", "eq. (", "question", "earlier", "part (", "passage", "above text",
    "上题", "上一题", "前一题", "上一问", "前题", "上述问题", "同上", "例题", "习题", "材料",
    "exercice", "précéd", "ejercicio", "anterior", "esercizio", "precedente", "aufgabe", "vorherig", "vorig",
    "предыдущ", "задач", "упражнен", "пункт",
]  # fmt: skip

ELSEWHERE = either(
    r"\b(?:in|of|from|see|using|by|to|as\s+in|with|under|for)\s+(?:the\s+|our\s+)?(?:previous|preceding|last"
    r"|foregoing|earlier)\s+(?:problem|exercise|question|part|example|section|chapter|result|theorem|lemma)s?\b",
    r"\b(?:in|of|from|see|using|by|as\s+in|with|under|to|recall|and|use)\s+(?:(?-i:Exercise|Example|Section"
    r"|Chapter|Problem|Question)s?|theorem|lemma|proposition|corollary)\s*\(?\d+(?:\.\d+)*\)?[a-d]?\b",
    r"\b(?:equations?|eqs?\.?|formula)\s*\(\d+\.\d+\)|\b(?:exercise|theorem|lemma|proposition|corollary"
    r"|example)\s+\d+\.\d+\b",
    r"\b(?:part|parts)\s+\(?[a-d1-4i]{1,3}\)\s+(?:of\s+(?:the|this)\s+(?:previous|problem|exercise)|above)"
    r"|\bfrom\s+part\s+\(?[a-d]\)?|\bin\s+the\s+(?:passage|text|article|story)\s+above\b",
    r"上一?题|前一?题(?:中|的|所)|上一问|上述(?:问题|题目|例题)|同上题|[由见用据]例题?\s?\d|见(?:习题|课本|教材|第)|(?:阅读|根据)(?:上面|上述)(?:的)?材料",
    r"\b(?:exercice|problème|question)s?\s+précédente?s?\b|\b(?:ejercicio|problema|pregunta)\s+anterior\b"
    r"|\b(?:esercizio|problema)\s+precedente\b|\b(?:vorherigen?|vorigen?|vorangegangenen?|letzten)\s+(?:aufgabe"
    r"|beispiel|teil)",
    r"предыдущ\w+\s+(?:задач|пункт|упражнен|вопрос|пример)\w*|(?:из|в|см\.)\s+(?:задач[еиу]|упражнени[еияю])\s+\d+",
)  # fmt: skip
