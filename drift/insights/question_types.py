"""What kind of question was asked, by its first words, in English, German, French and Spanish. Pure."""

import re

OTHER = "other"
_HEAD = 200  # characters in which the first words stand
_FIRST = 6  # words of them that are looked at


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[^\W\d_]+")
_PLEASE = re.compile(r"s['\u2019]il (?:vous|te) pla[iî]t|por favor")
_SKIPPED = _words(
    "please hi hello hey ok okay so and but also well bitte hallo und aber also na bonjour salut et mais alors "
    "hola y pero entonces"
)
_BEFORE = _words(
    "in at for to from with by on of about since until mit für von bei an auf zu seit bis über aus à de dans pour avec "
    "depuis en par sur por para con desde hasta sobre a"
)
_WORDS = {
    "who": "who whose whom wer wem wen wessen qui quién quien quiénes quienes",
    "what": "what whats which welche welcher welches welchen welchem que quoi quel quelle quels quelles qu qué cuál "
    "cual cuáles cuales worum woran womit wofür",
    "when": "when wann quand cuándo cuando",
    "where": "where wo woher wohin où dónde donde adónde",
    "how": "how wie comment cómo como",
    "how_many": "wieviel wieviele combien cuánto cuánta cuántos cuántas cuanto cuanta cuantos cuantas",
    "why": "why warum wieso weshalb pourquoi",
    "yes_no": "is are am were do does did can could will would shall should may might must has have had isn aren don "
    "doesn didn won wouldn shouldn ist sind bin war waren hat haben kann können könnte darf dürfen muss müssen soll "
    "sollte sollten wird werden würde gibt peut puis peux pouvez est sont ai as avons avez ont",
    "command": "tell show list explain give find write summarize summarise translate compare describe create help make "
    "define calculate suggest recommend erkläre erklär zeige zeig nenne liste schreibe finde gib beschreibe vergleiche "
    "übersetze hilf explique expliquez montre montrez donne donnez écris écrivez décris décrivez traduis traduisez "
    "résume résumez explica explique muestra muéstrame dime dame escribe traduce resume enumera",
}
_TYPE_OF = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_PHRASES = {
    ("how", "many"): "how_many",
    ("how", "much"): "how_many",
    ("how", "come"): "why",
    ("wie", "viel"): "how_many",
    ("wie", "viele"): "how_many",
    ("por", "qué"): "why",
    ("por", "que"): "why",
    ("est", "ce"): "yes_no",
    ("can", "you"): "command",
    ("could", "you"): "command",
    ("would", "you"): "command",
    ("will", "you"): "command",
}
# English "was" asks for yes or no, the German one for a thing: what follows it tells.
_AFTER_WAS = _words("the it there this that he she a an my your his her our their any i you we they")
TYPES = (*_WORDS, OTHER)


def question_type(question: str) -> str:
    """One of `TYPES`; `other` where the first words tell none."""
    head = _PLEASE.sub(" ", question[:_HEAD].casefold())
    words = [word for word in _WORD.findall(head)[:_FIRST] if word not in _SKIPPED]
    if not words:
        return OTHER
    pair = (words[0], words[1] if len(words) > 1 else "")
    if pair in _PHRASES:
        return _PHRASES[pair]
    if words[0] == "was":
        return "yes_no" if pair[1] in _AFTER_WAS else "what"
    if words[0] in _TYPE_OF:
        return _TYPE_OF[words[0]]
    if words[0] in _BEFORE:
        asked = _TYPE_OF.get(pair[1], OTHER)
        return OTHER if asked in ("yes_no", "command") else asked
    return "yes_no" if question.lstrip().startswith("¿") else OTHER
