# ruff: noqa: RUF001
"""Phrases by which answers say that they are none, by kind, in the languages most users write.

A phrase is words: "a|b" is either word, "*" up to three of any, a first "^" the answer's beginning (an apology may come
before), a last "$" the end of a sentence. "do not" also reads "don't", "i am" also "i'm". A word that an answer about
the world could hold as well stands with what makes it the speaker's: who speaks, what was read, or that
nothing follows.
"""

from collections.abc import Mapping
from itertools import product

_CODE = "400|401|403|404|408|429|500|502|503|504|529"
_STATUS = (
    *("internal server error", "service unavailable", "service temporarily unavailable", "bad gateway"),
    *("gateway timeout", "gateway time-out", "too many requests", "rate limit * exceeded|reached", "request timeout"),
)
_BEFORE_STATUS = ("^", f"^ {_CODE}", f"^ error|http|http/1.1|status {_CODE}", f"^ error|status code {_CODE}", "^ error")
_READ = (
    "context|contexts|document|documents|text|texts|passage|passages|excerpt|excerpts|source|sources|article|articles|"
    "materials|snippets"
)
_ABOUT = "about|on|in|regarding|concerning|available|provided|given|that|here|$"
_SAID = (
    "mention|specify|state|say|address|discuss|indicate|clarify|explain|reference|cover|list|describe|define|elaborate"
)
_HELD = "contain|provide|include|give|offer|have|hold"
_TOLD = "information|details|answer|answers|anything|mention|data|guidance|instructions|enough"
_DONE = (
    "help|assist|answer|provide|fulfill|fulfil|comply|share|discuss|give|do|complete|support|engage|generate|disclose|"
    "reveal|recommend|advise|comment|respond"
)
_FOUND = "find|locate|determine|tell|identify|verify|confirm"

_ERROR_TEXT = (
    *(f"{before} {status} $" for before, status in product(_BEFORE_STATUS, _STATUS)),
    *(f"^ error|http|status {_CODE} $", f"^ error|status|http code|error|status {_CODE} $", "^ error $"),
    *("^ traceback most recent call last", "^ something went wrong $", "^ something went wrong please|on|while"),
    *("^ request timed out $", "^ the|your request|connection|operation * timed out $", "^ the server encountered an"),
    *("^ an|unexpected|unknown|internal * error * occurred $", "^ connection refused|reset|error $"),
    "^ timeout|network|server|api|internal|unknown|unexpected error $",
    "^ an|unexpected|unknown|internal * error * occurred please|while|processing",
    *(
        "^ failed to generate|fetch|process|retrieve|connect",
        "^ quota exceeded $",
        f"^ request failed with status code {_CODE} $",
        "^ you have exceeded your",
    ),
    *("^ the model|service|server is * overloaded|unavailable $", "^ please try again later $"),
    *("^ es|ein * fehler * aufgetreten $", "^ etwas ist schiefgelaufen $", "^ une erreur * produite|survenue $"),
    *("^ ha ocurrido un error $", "^ se ha producido|produjo un error $", "^ se produjo un error $"),
    *("^ si è verificato un * errore $", "^ ocorreu um erro $", "^ er is * fout opgetreden $", "^ wystąpił błąd $"),
    *("^ произошла ошибка $", "^ bir hata oluştu $", "^ ett fel * inträffade|uppstod $"),
    *("^ エラーが発生しました", "^ 오류가 발생했습니다", "^ 发生错误", "^ 出错了", "^ 發生錯誤"),
)
_REFUSED = (
    *(f"i can not * {_DONE}", f"i could not * {_DONE}", f"i will not * {_DONE}"),
    *("i am unable to", "i was unable to", "i am not in a position", "i am not comfortable", "i refuse to"),
    "i am not able|allowed|permitted|authorized|authorised|qualified|programmed|designed",
    *("i was not able to", "i must|will decline|refuse", "i have|need to decline|refuse", "i would rather|prefer not"),
    *("i decline to", "not something i can", "not something that i can", "^ unable to answer|help|assist|comply"),
    *("^ can not help|assist|answer|comply", "^ no comment $"),
    "against my guidelines|policy|policies|programming|rules|instructions|principles",
    "ich kann * nicht * helfen|beantworten|antworten|weiterhelfen|sagen|geben",
    "kann ich * nicht * helfen|beantworten|antworten|weiterhelfen|sagen|geben",
    *("ich darf * nicht * beantworten|geben|sagen", "ich bin nicht in der lage", "ich bin nicht befugt"),
    "je ne peux|puis * pas * aider|répondre|fournir|donner|traiter",
    *("je ne suis pas * mesure|capable|autorisé|habilité", "je suis incapable de", "il m est impossible de"),
    "no puedo * ayudar|ayudarte|ayudarle|responder|proporcionar|contestar|dar|darte|darle",
    *("no me es posible", "no soy capaz de", "no estoy autorizado|capacitado|seguro|segura"),
    "non posso * aiutare|aiutarti|aiutarla|rispondere|fornire|dare|darti|darle",
    *("non sono in grado di", "non mi è possibile", "non sono autorizzato"),
    "não posso|consigo * ajudar|ajudá-lo|responder|fornecer|dar",
    *("não sou capaz de", "não estou autorizado"),
    "ik kan * niet * helpen|beantwoorden|geven",
    "kan ik * niet * helpen|beantwoorden|geven",
    *("ik ben niet in staat", "ik mag * niet * beantwoorden|geven"),
    "nie mogę * pomóc|odpowiedzieć|udzielić|podać",
    *("nie jestem w stanie", "я не могу", "не могу * помочь|ответить|предоставить|сказать"),
    *("yardımcı olamam|olamıyorum", "cevap|yanıt veremem|veremiyorum", "yanıtlayamam|cevaplayamam|yanıtlayamıyorum"),
    *("jag kan * inte * hjälpa|svara|ge|besvara", "kan jag * inte * hjälpa|svara|ge|besvara"),
    *("لا أستطيع * مساعدتك|الإجابة|تقديم", "لا يمكنني * مساعدتك|الإجابة|تقديم"),
    *(
        "お答えできません",
        "お答えすることはできません",
        "お手伝いできません",
        "回答できません",
        "回答することができません",
    ),
    *("无法回答", "我无法", "不能回答", "我不能", "無法回答", "我無法", "不便回答"),
    *("도와드릴 수 없습니다", "답변할 수 없습니다", "답변드릴 수 없습니다", "답변해 드릴 수 없습니다"),
)
_NO_KNOWLEDGE = (
    *("i do not know", "i do not really|currently|actually know", "i really|honestly|simply|just do not know"),
    *("i am not sure", "i am not certain", "i am not aware of", "i am not familiar with", "i have no clue"),
    "i do not have * information|access|knowledge|data|details|answer|ability|context",
    "i do not currently have * information|access|knowledge|data|details|answer",
    "i have no * information|knowledge|idea|data|record|access",
    *(
        f"i can not {_FOUND}|see",
        f"i could not {_FOUND}",
        "i did not find",
        "i do not see any|anything|information",
        "i have not found",
        "i found no|nothing",
    ),
    *("we could not find", "we do not have * information about|on|regarding", "^ we do not know"),
    *("i was not given|provided", "i have not been given|provided", "^ unable to find|determine|locate|retrieve"),
    "beyond|outside my * knowledge|scope|training|capabilities|expertise",
    *(f"there is no * information {word}" for word in _ABOUT.split("|")),
    *(f"there is no * mention|indication {word}" for word in ("of|in|about|that|anywhere", "$")),
    *(f"there is no * answer {word}" for word in ("to|in", "$")),
    *(
        "there is not enough|sufficient * information|context|data to|in|about|on|here",
        "there is not enough information",
    ),
    *("there isn t enough|sufficient * information|context|data", "outside|beyond * what|topics * i can|am"),
    *("^ not enough information|context|data $", "^ not enough information|context|data to|in|provided|available"),
    *("^ insufficient information|context|data $", "^ insufficient information|context|data to|in|provided|available"),
    *(f"no relevant|matching|related {each}" for each in ("information|documents|results|passages", "answer|context")),
    *(f"no * information * available|found|provided|given {word}" for word in ("on|about|in|regarding",)),
    *("no information available|found|provided $", "no information is|was available|found $"),
    *(f"{_READ} * {does} not * {_SAID}" for does in ("does", "do")),
    *(f"{_READ} * {does} not * {_HELD} * {_TOLD}" for does in ("does", "do")),
    f"{_READ} * has|have|contains|contain|provides|provide|offers|offer|gives|give no|nothing * "
    "information|details|mention|answer|indication|about|on|regarding",
    f"{_READ} * lacks|lack|makes|make no|any|the|sufficient|enough|relevant * information|details|mention",
    f"none|neither of the|these|your|my * {_READ}",
    f"nothing * in|from the|these|this|your * {_READ}",
    *(
        f"{negated} * mentioned|specified|found|stated|discussed|addressed|answered|covered in|by|within "
        "the|these|this|your|any * "
        f"{_READ}"
        for negated in ("not", "is not", "are not", "was not")
    ),
    f"information|answer|this|that does not * appear in|within the|these|this|your|any * {_READ}|files",
    *(
        f"answer|answers|information|details * {be} not * in|within|from|by the|these|this|your|any * {_READ}"
        for be in (
            "is",
            "are",
        )
    ),
    f"can not be determined|answered|inferred|found from|based|in|using|with * the|these|this * {_READ}",
    *(
        "question can not * be answered",
        "can not be answered $",
        *(f"it|that|this can not be determined|answered {word}" for word in ("from|based|with|using", "$")),
    ),
    *("answer can not * be found|determined", "answer is not available|known|given|provided"),
    *(
        "answer is not $",
        "it is not possible to determine|answer|tell|say",
        "impossible to say|tell|determine|answer|know from|based|with|given",
        "it is unclear from",
    ),
    f"unclear|clear from the|these|this * {_READ}",
    *(
        "^ n/a|unknown|unanswerable|unclear|undetermined|null|undefined $",
        "^ no idea|clue|answer|information|results $",
    ),
    "^ not available|applicable|known|specified|stated|mentioned|provided|found|given|answerable|sure $",
    *("^ no answer|information|results|matches|documents|mention found|available|provided|of|about|regarding|in",),
    *("ich weiß|weiss es|das|dies * nicht", "das|dies weiß|weiss ich * nicht", "weiß|weiss ich * nicht $"),
    *("mir liegen|liegt * keine * informationen|information|angaben", "keine angabe|ahnung $"),
    *("liegen|liegt mir|uns * keine", "ich habe * nichts * gefunden", "nichts dazu|darüber gefunden"),
    "steht|stehen * nicht im|in * text|kontext|dokument|dokumenten|unterlagen",
    "keine * informationen|angaben * gefunden|verfügbar|vorhanden",
    "es liegen|gibt * keine * informationen|angaben dazu|darüber|vor|zu|über|hierzu",
    *("ich habe * keine|keinen * informationen|angaben|zugriff|antwort", "habe ich * keine * informationen|angaben"),
    "kontext|text|dokument|dokumente|dokumenten|unterlagen|quellen * keine * informationen|angaben|antwort|hinweise",
    "kontext|text|dokument|dokumente|dokumenten|unterlagen|quellen * nicht * "
    "erwähnt|genannt|angegeben|enthalten|hervor",
    "kontext|text|dokument|dokumente|unterlagen|quellen erwähnt|erwähnen|nennt|nennen * nicht",
    "nicht im|in * kontext|dokument|dokumenten|unterlagen * erwähnt|genannt|angegeben|enthalten",
    *(
        "ich kann * nichts * sagen",
        "gibt * keine auskunft",
        "konnte ich * nicht|nichts|keine * finden",
        "ich konnte * nicht|nichts|keine * finden",
    ),
    *("je ne sais pas", "je l ignore", "je ne connais pas la réponse", "aucune idée $"),
    "je n ai pas|aucune|trouvé * information|informations|réponse|idée|accès",
    "je ne dispose|trouve pas|d|aucune|de",
    "contexte|document|documents|texte|textes|sources * ne "
    "mentionne|mentionnent|précise|précisent|indique|indiquent pas",
    "ne contient|contiennent|fournit|fournissent|donne pas|aucune * information|informations|réponse",
    "aucune * information * disponible|trouvée|fournie|concernant|sur|dans",
    *(
        "information|informations|réponse n est|figure|apparaît|sont * pas * disponible|disponibles|dans",
        "n en parle pas",
    ),
    "pas * mentionné|mentionnée|précisé|précisée|indiqué|indiquée|trouvée dans",
    *("no lo sé", "no sé $", "no sé la respuesta", "desconozco la|esa|el respuesta|dato", "ni idea $"),
    "no tengo|dispongo * información|acceso|datos|respuesta",
    "no aparece|figura|está|consta en el|los|la|las * documento|documentos|texto|textos|contexto|fuentes",
    "no encontré|encuentro|encontrado * información|respuesta|nada",
    "no hay * información * sobre|disponible|en|suficiente",
    "contexto|documento|documentos|texto|textos|fuentes * no * "
    "menciona|mencionan|especifica|especifican|indica|indican",
    "no contiene|contienen|proporciona|proporcionan|incluye|incluyen|ofrece * información|respuesta",
    "no * menciona|especifica|encuentra|indica en el|los|la|las * contexto|documento|documentos|texto|textos|fuentes",
    *("non lo so", "non so $", "non conosco la risposta", "non ho|dispongo * informazioni|accesso|dati|risposta"),
    *("non ho trovato", "non trovo", "non riesco a trovare|rispondere"),
    "non ci sono * informazioni * su|sul|sulla|sui|nel|nei|disponibili|sufficienti|al",
    "contesto|documento|documenti|testo|testi|fonti * non * menziona|menzionano|specifica|specificano|indica|indicano",
    "non contiene|contengono|fornisce|forniscono * informazione|informazioni|risposta|dettagli",
    "informazioni * non * bastano|sufficienti",
    "non * menzionato|menzionata|specificato|presente|indicato nel|nei|nella * contesto|documento|documenti|testo",
    *(
        "não sei $",
        "não sei a|responder|dizer|isso",
        "desconheço",
        "não tenho|disponho * informações|informação|acesso",
    ),
    *("não encontrei", "não consegui encontrar", "não há * informações|informação * sobre|no|na|nos|disponíveis"),
    "contexto|documento|documentos|texto|textos|fontes não * menciona|mencionam|especifica|especificam|informa|indica",
    "não contém|contêm|fornece|fornecem * informações|informação|resposta|detalhes|dados",
    *(
        "ik weet het * niet",
        "dat weet ik * niet",
        "ik heb * geen * informatie|toegang|antwoord",
        "heb ik * geen * informatie|antwoord",
        "geen idee $",
    ),
    *("ik kan * niet|geen * vinden", "er is geen * informatie * over|beschikbaar|gevonden|in"),
    "context|document|documenten|tekst|bronnen * vermeldt|vermelden|noemt|noemen|bevat|bevatten * geen * informatie",
    "context|document|documenten|tekst vermeldt|vermelden|noemt|noemen * niet",
    "staat|staan * niet in de|het * context|document|documenten|tekst",
    "niet vermeld|genoemd|gevonden in de|het * context|document|documenten|tekst",
    *(
        "nie wiem",
        "nie znam odpowiedzi",
        "nie mam * informacji|dostępu|danych",
        "nie znalazłem|znalazłam",
        "brak * informacji * na|o|w",
        "brak * informacji $",
    ),
    *("kontekst|dokument|dokumenty|tekst nie zawiera|zawierają|wspomina|wspominają", "я не знаю", "^ не знаю $"),
    *(
        "у меня нет * информации|доступа|данных|ответа",
        "нет * информации|ответа|сведений|данных о|об|на|в|по",
        "я не нашел|нашёл|нашла",
    ),
    "контексте|документе|документах|тексте * не * упоминается|указано|указана|указан|говорится|содержится",
    *("контекст|документ|документы|текст не содержит|содержат|упоминает|упоминают", "bilmiyorum", "bilgim yok"),
    *(
        "bilgi * bulunmuyor|bulunmamaktadır|bulamadım|yer",
        "jag vet inte",
        "jag har * ingen|inte * information|tillgång",
    ),
    *("det finns ingen * information", "jag hittade ingen|inget|inte", "framgår inte"),
    *("لا أعرف", "لا أعلم", "لا توجد معلومات", "ليس لدي", "मुझे * नहीं पता|मालूम", "जानकारी नहीं है"),
    *("わかりません", "分かりません", "存じません", "情報がありません", "情報は見つかりません", "情報が見つかりません"),
    *(
        "情報は含まれていません",
        "記載がありません",
        "記載されていません",
        "記載はありません",
        "見つけることができません",
    ),
    *(
        "我不知道",
        "我不清楚",
        "我不确定",
        "没有相关信息",
        "没有提到",
        "未提及",
        "没有提及",
        "找不到相关",
        "没有找到相关",
    ),
    *(
        "沒有相關資訊",
        "沒有提到",
        "没有足够的信息",
        "没有关于",
        "没有相关内容",
        "文档中没有",
        "文中没有",
        "资料中没有",
        "没有说明",
        "未提供相关",
        "没有提供相关",
    ),
    *(
        "모르겠습니다",
        "모릅니다",
        "알 수 없습니다",
        "정보가 없습니다",
        "정보를 찾을 수 없습니다",
        "언급되어 있지 않습니다",
        "문서에 없습니다",
        "나와 있지 않습니다",
    ),
)
PHRASES: Mapping[str, tuple[str, ...]] = {
    "error_text": _ERROR_TEXT,
    "refused": _REFUSED,
    "no_knowledge": _NO_KNOWLEDGE,
}
