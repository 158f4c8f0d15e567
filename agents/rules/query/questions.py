"""Parse a question: its types, speaker names, and the text and terms to search for. Pure.

Speaker names blur a search: they are attached to every turn and rarely occur in the text of the answering one. Types
are patterns in English, German, Spanish, French, Italian and Portuguese, used as features crossed with labels of a
memory: an answer to `when` has a date. A question has any number of types; in other languages few.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agents.rules.text.non_english import is_non_english
from agents.rules.text.tokenizer import content_terms, extract_entities, fold, question_terms

MAX_QUESTION_CHARS = 4096
"""Maximum characters read of a question; longer text is a pasted page."""

_OPENING = re.compile(r"^[^\w]+")

_FORMS: Mapping[str, str] = {
    "when": (
        r"\b(?:when|wann|seit wann|cuando|quand|quando)\b|^how long ago\b"
        r"|\b(?:what|which) (?:date|day|month|year|time)\b"
        r"|\ban welchem tag\b|\bin welche[mr] (?:monat|jahr|woche)\b|\ben que (?:ano|mes|fecha|dia)\b"
        r"|\bque (?:dia|fecha)\b|\bquel(?:le)? (?:jour|date|annee|mois)\b"
        r"|\b(?:em|in) (?:que|che) (?:dia|mes|ano|anno|mese)\b"
    ),
    "how_many": (
        r"\bhow (?:many|much|often|long|old|far|big|tall|fast|large)\b"
        r"|\bwie ?(?:viel\w*|oft|lange|alt|gross|hoch|weit|teuer)\b"
        r"|\bcuant[oa]s?\b|\bcombien\b|\bquant[oaie]s?\b"
    ),
    "where": r"\b(?:where|wo|woher|wohin|donde|dove|onde|ou)\b|\b(?:what|which) (?:city|country|place|state|town)\b",
    "who": r"\b(?:who|whom|whose|wer|wem|wen|wessen|quien(?:es)?|chi|quem)\b|^(?:a |avec |de |pour )?qui\b",
    "why": (
        r"\b(?:why|warum|wieso|weshalb|pourquoi|perche)\b|\bpor que\b|\breason\b"
        r"|\bwhat (?:made|inspired|motivated|prompted|caused)\b"
    ),
    "yes_no": (
        r"^(?:is|are|was|were|do|does|did|has|have|had|would|could|can|should|will|might"
        r"|ist|sind|war|hat|haben|kann|wurde|soll)\b"
    ),
    "would": r"\b(?:would|might|likely|probably|could|considered)\b",
    "several": (
        r"\b(?:what|which) (?:\w+ )?(?:\w+[^s\W]s|kind|type)\b|\b(?:step by step|change[ds]?|each|all)\b"
        r"|\bwelche \w+en\b|\b(?:que|quais|quali) \w+[si]\b|\bquel(?:le)?s\b"
    ),
    "what": r"^(?:what|which|welche\w*|was|que|cual(?:es)?|quel\w*|che|qual\w*)\b",
    "what_kind": r"\b(?:what|which) (?:kind|type|sort)s?\b",
    "own": (
        r"\b(?:i|my|me|we|our|us|ich|mein\w*|mir|mich|wir|uns\w*|yo|mi|mis|nos|je|j'ai|mon|ma|mes|nous|io|mio|mia|miei"
        r"|eu|meus?|minhas?)\b"
    ),
    "yours": r"\b(?:you|your|du|dein\w*|dir|tu|tus|te|usted|tuo|tua|voce|vous|votre)\b",
    "advised": (
        r"\b(?:recommend\w*|suggest\w*|advis\w*|advice|propos\w*|warn\w*|tips?|your (?:plan|list|answer|draft|version)"
        r"|(?:did|had|have) you (?:say|said|tell|told|give|gave|given|write|wrote|written|calculate\w*|explain\w*)"
        r"|you (?:said|told|gave|wrote|calculated|explained|came up|drafted|mentioned|listed)"
        r"|empf\w+hl\w*|vorgeschlagen|vorschlag\w*|geraten|rat|tipps?|gewarnt"
        r"|recomend\w*|sugeri\w*|aconsej\w*|consejos?|propusiste|propuesta|dijiste"
        r"|recommand\w*|conseil\w*|sugger\w*|propose\w*"
        r"|consigli\w*|suggeri\w*|propost\w*|aconselh\w*|conselhos?)\b"
    ),
}

REMARK = "remark"
"""The type of a text that asks nothing: a statement, or the next step. A few search terms do not count."""

MIN_REMARK_WORDS = 7
"""Minimum words of a remark: fewer are search terms, which a hit should have."""

_SENTENCE = re.compile(r"[.!\u2026](?:[\s\"')]|$)")

QUESTION_TYPES = frozenset({*_FORMS, REMARK})

_ASKS = re.compile(
    r"[?\uff1f]|^(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|should"
    r"|would|will|was|welche\w*|wer|wen|wem|wann|wo|warum|wie|que|cual\w*|quien\w*|cuando|donde|por que|como|cuant\w*"
    r"|quel\w*|qui|quand|ou|pourquoi|comment|combien|che|chi|quando|dove|perche|quant\w*|quem|onde)\b"
)

_PATTERNS = {name: re.compile(form) for name, form in _FORMS.items()}


def detect_question_types(question: str) -> frozenset[str]:
    text = _OPENING.sub("", fold(question[:MAX_QUESTION_CHARS]))
    types = frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(text))
    tells = len(_WORD.findall(text)) >= MIN_REMARK_WORDS and ("own" in types or _SENTENCE.search(text))
    return types | {REMARK} if tells and not _ASKS.search(text) else types


MAX_QUESTION_TERMS = 256
"""Maximum distinct terms that are looked up; bounds the cost of a pasted page."""

_WORD = re.compile(r"\w+(?:['\u2019]s\b)?")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed question; `text` and `terms` do not contain speaker names.

    `asked` is the original text. `named` are the mentioned speakers, spelt as on the memories. `traits` come from
    `agents.rules.query.questions`, `foreign` from `agents.rules.text.languages`.
    """

    text: str
    terms: tuple[str, ...]
    entities: tuple[str, ...]
    named: frozenset[str]
    asked: str = ""
    traits: frozenset[str] = frozenset()
    foreign: bool = False


def parse_question(query: str, speakers: Iterable[str]) -> Question:
    names: dict[str, frozenset[str]] = {}
    for speaker in speakers:
        for part in _WORD.findall(fold(speaker)):
            if len(part) > 1:
                names[part] = names.get(part, frozenset()) | {speaker}
    named: set[str] = set()

    def without(match: re.Match[str]) -> str:
        word = match.group()
        speakers_named = names.get(fold(word[:-2] if word[-2:] in ("'s", "\u2019s") else word), frozenset())
        if not speakers_named or (word.islower() and not query.islower()):
            return word
        named.update(speakers_named)
        return " "

    text = _SPACES.sub(" ", _WORD.sub(without, query)).strip()
    terms = content_terms(text)
    if not terms:
        text, terms = query, question_terms(query)
    return Question(
        text,
        tuple(terms[:MAX_QUESTION_TERMS]),
        extract_entities(query),
        frozenset(named),
        query,
        detect_question_types(query),
        is_non_english(text),
    )
