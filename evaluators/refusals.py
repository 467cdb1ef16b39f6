"""How answers say that they are none: phrases by kind, in the languages most users write, and the search for them."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from evaluators.surrogates import replaced

# A phrase is words: "a|b" is either word, "*" up to three of any. "do not" also reads "don't", "i am" also "i'm".
PHRASES: Mapping[str, tuple[str, ...]] = {
    "error_text": (
        "internal server error",
        "service unavailable",
        "bad gateway",
        "gateway timeout",
        "too many requests",
        "rate limit * exceeded",
        "request timed out",
        "traceback most recent call last",
        "an|unexpected * error * occurred",
        "something went wrong",
    ),
    "refused": (
        "i can not * help|assist|answer|provide|fulfill|fulfil|comply|share|discuss|give|do|complete|support|engage",
        "i could not * help|assist|answer|provide|fulfill|fulfil|comply|complete",
        "i will not * help|assist|answer|provide|fulfill|fulfil|comply|share|discuss|give",
        "i am unable to",
        "i was unable to",
        "i am not able|allowed|permitted to",
        "i am not comfortable",
        "i must decline",
        "i have to decline",
        "against my|our guidelines|policy|policies|programming",
        "ich kann * nicht * helfen|beantworten|antworten|weiterhelfen",
        "je ne peux|puis * pas * aider|répondre|fournir",
        "no puedo * ayudar|ayudarte|ayudarle|responder|proporcionar",
        "non posso * aiutare|aiutarti|aiutarla|rispondere|fornire",
        "não posso * ajudar|responder|fornecer",
        "ik kan * niet * helpen|beantwoorden",
        "お答えできません",
        "お手伝いできません",
        "无法回答",
        "无法提供",
        "不能回答",
    ),
    "no_knowledge": (
        "i do not know",
        "i do not really|currently|actually know",
        "i am not sure",
        "i do not have * information|access|knowledge|data|details|answer",
        "i do not currently have * information|access|knowledge|data|details|answer",
        "i have no information|knowledge|idea|data",
        "i can not find|locate|determine|tell",
        "i could not find|locate|determine|tell",
        "i did not find",
        "unable to find|determine|locate|answer",
        "there is no * information|mention|answer",
        "there is not enough|sufficient information",
        "not enough information",
        "insufficient information|context|data",
        "no relevant information|documents|results",
        "no information * available|found|provided",
        "context|document|text|passage|information|source * does not mention|contain|provide|specify|include|say",
        "contexts|documents|texts|passages|excerpts|sources * do not mention|contain|provide|specify|include|say",
        "can not be determined|answered",
        "not mentioned|provided|specified|found in the * context|contexts|documents|document|text|sources",
        "ich weiß|weiss es nicht",
        "das|dies weiß|weiss ich nicht",
        "mir liegen|liegt|liegen * keine * informationen|information|angaben",
        "keine * informationen * gefunden|verfügbar|vorhanden",
        "je ne sais pas",
        "je n ai pas * information|informations",
        "no lo sé",
        "no tengo * información",
        "non lo so",
        "non ho * informazioni",
        "não sei",
        "não tenho * informações",
        "ik weet het niet",
        "わかりません",
        "分かりません",
        "情報がありません",
        "我不知道",
        "没有相关信息",
    ),
}
_CONTRACTED = {
    "can not": "can ?not|can'?t",
    "could not": "could not|couldn'?t",
    "did not": "did not|didn'?t",
    "do not": "do not|don'?t",
    "does not": "does not|doesn'?t",
    "i am": "i am|i'?m",
    "there is": "there is|there'?s",
    "will not": "will not|won'?t",
}
_APOSTROPHE = "['\u2019]"
_GAP = "[\\s,;:'\u2019\"()*_-]{1,3}"  # between two words of a sentence
_ANY = f"(?:[^\\s.!?]+{_GAP}){{0,3}}"
_SPACELESS = "\u2e80"  # from here on scripts write no blanks between words


class Refusals:
    """Finds phrases of one kind, whatever their case and the blanks between their words; linear in the text."""

    def __init__(self, phrases: Sequence[str]) -> None:
        """Raises `ValueError` where a phrase has no word, or they are too many for one pattern."""
        import re2

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        spaced = [_pattern(phrase) for phrase in phrases if phrase.strip() < _SPACELESS]
        spaceless = [_pattern(phrase) for phrase in phrases if phrase.strip() >= _SPACELESS]
        whole_words = rf"(?:^|[^\pL\pN])({'|'.join(spaced)})(?:$|[^\pL\pN])"
        given = [whole_words] if spaced else []
        given += [f"({'|'.join(spaceless)})"] if spaceless else []
        try:
            self._pattern: Any = re2.compile("|".join(given), options)
        except re2.error:
            raise ValueError("too many phrases, or too long ones") from None

    def find(self, text: str) -> tuple[int, int] | None:
        """Where the first phrase stands (character offsets), if one does."""
        found = self._pattern.search(replaced(text))
        if found is None:
            return None
        start, end = found.span(found.lastindex)
        return int(start), int(end)


@lru_cache(maxsize=8)
def refusals(more: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> Mapping[str, Refusals]:
    """A finder for each kind: the built-in phrases, and `more` by kind. Raises `ValueError` as `Refusals` does."""
    kinds: dict[str, tuple[str, ...]] = dict(PHRASES)
    for kind, phrases in more:
        kinds[kind] = (*kinds.get(kind, ()), *phrases)
    return {kind: Refusals(phrases) for kind, phrases in kinds.items() if phrases}


def _pattern(phrase: str) -> str:
    import re2

    words = phrase.split()
    if not any(map(str.isalnum, phrase)):
        raise ValueError("a phrase without a word")
    parts: list[str] = []
    while words:
        pair = " ".join(words[:2]).lower()
        if pair in _CONTRACTED:
            contracted = (
                _CONTRACTED[pair].replace("'?", f"{_APOSTROPHE}?").replace(" ?", f"(?:{_GAP})?").replace(" ", _GAP)
            )
            parts.append(f"(?:{contracted}){_GAP}")
            words = words[2:]
        elif words[0] == "*":
            parts.append(_ANY)
            words = words[1:]
        else:
            parts.append(f"(?:{'|'.join(map(re2.escape, words[0].split('|')))}){_GAP}")
            words = words[1:]
    return "".join(parts).removesuffix(_GAP)
