"""Detect the intent of a turn, and map intents to interaction modes. Pure.

Enters: a text, or an intent from a caller or a model. Leaves: an intent of the table, or None if no rule is sure.
Guaranteed: only the beginning of a text is read, by patterns with bounded backtracking, so long texts cost no more.
"""

import re
from collections.abc import Mapping

from modestream_client.vocabulary import InteractionMode

from agents.rules.text.tokenizer import fold


def _any(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_POLITE = _any(
    r"hi|hey|hello|ok|okay|so|now|then|and|also|please|pls|just|can you|could you|would you|will you",
    r"hallo|bitte|und|jetzt|kannst du|konntest du|konnen sie|konnten sie|mir|mal",
    r"hola|ahora|y|por favor|porfa|me puedes|puedes|podrias|bonjour|maintenant|et|s'il te plait|s'il vous plait",
    r"peux-tu|tu peux|pouvez-vous|ciao|ora|puoi|potresti|voce pode|pode|podes|kun je|kan je",
)
"""Words to skip before the decisive word."""

_GAP = r"[^.!?\n]{0,80}?"
"""Anything within the sentence."""

_MINE = r"(?:my|our|this|the|it|mein\w{0,2}|unser\w{0,2}|mi|nuestr[oa]|mon|ma|notre)"

_SYMPTOM = _any(
    r"error|bug|crash\w{0,3}|fail\w{0,4}|broken|issue|problem|exception|leak\w{0,3}",
    r"fehler|absturz|problema?|erreur|panne|plantage|fallo|errore|erro|fout|storing",
)


def _intent(name: str, *beginnings: str) -> tuple[str, re.Pattern[str]]:
    return name, re.compile(rf"(?:{_POLITE},?[ ]){{0,4}}" + _any(*beginnings))


INTENT_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    _intent(
        "error",
        (
            r"i(?:'m| am| keep| get|'ve been)? ?(?:still )?(?:getting|get|seeing|hitting) (?:an?|this|the) "
            r"(?:\w{1,20} )?(?:error|exception)"
        ),
        r"stack ?trace|error[: ]",
    ),
    _intent(
        "fix",
        r"(?:fix|solve|behebe?|reparier\w{0,2}|lose|arregla|repara|corrige|ripara|conserta|los)"
        rf"{_GAP}\b{_SYMPTOM}\b",
    ),
    _intent(
        "debug",
        r"debug\b|find out why\b|finde heraus,? warum\b|averigua por que\b|trouve pourquoi\b",
        (
            rf"(?:why|warum|wieso|weshalb|por que|pourquoi|perche|waarom)\b{_GAP}\b"
            r"(?:fail\w{0,3}|crash\w{0,3}|broken|not work\w{0,3}|nicht mehr|ya no|ne (?:\w{1,15} )?plus|keeps?)\b"
        ),
        (
            rf"{_MINE} {_GAP}\b(?:doesn't|does not|won't|isn't|can't) (?:\w{{1,12}} )?"
            r"(?:work|start|open|load|turn on|boot)\b"
        ),
        (
            rf"{_MINE} {_GAP}\b(?:keeps? \w{{1,12}}ing|stopped \w{{1,12}}ing|(?:geht|funktioniert|startet) nicht|"
            r"no (?:funciona|arranca)|ne (?:marche|fonctionne|demarre) (?:pas|plus))\b"
        ),
    ),
    _intent("teach", r"(?:teach me|bring mir|ensename|apprends-moi|insegnami|ensina-me|me ensina|leer me)\b"),
    _intent(
        "explain", r"(?:explain|erklare?n?|explicame|explica|explique[rz]?(?:-moi)?|spiegami|spiega|leg (?:me )?uit)\b"
    ),
    _intent(
        "learn",
        r"(?:what does|was bedeutet|que significa|que veut dire|cosa significa|o que significa|wat betekent)\b",
        (
            r"(?:what's|what is|was ist|cual es|quelle est|qual e|wat is) (?:the|der|la|a|het)? ?"
            r"(?:difference|unterschied|diferencia|diferenca|differenza|verschil)\b"
        ),
        r"(?:how does|how do|wie funktioniert|como funciona|comment fonctionne|come funziona|hoe werkt)\b",
        r"help me understand\b|i(?: want|'d like| would like) to (?:learn|understand)\b",
    ),
    _intent(
        "explore",
        r"what if\b|what about if\b|i'm (?:just )?(?:thinking|wondering|torn|toying)\b|brainstorm|any ideas\b",
        r"i am (?:thinking|wondering|torn)\b|i(?:'ve| have) been (?:thinking|wondering)\b",
        r"let's (?:explore|brainstorm|think)\b|thinking (?:about|of)\b",
        r"was ware,? wenn\b|ich (?:uberlege|frage mich|denke daruber)\b|y si\b|estoy pensando\b",
        r"et si\b|je (?:me demande|reflechis|songe)\b|e se\b|sto pensando\b|estou pensando\b|wat als\b",
    ),
    _intent("investigate", r"(?:investigate|look into|untersuche|erkunde|investiga|explora|enquete|explore[rz]?)\b"),
    _intent(
        "implement",
        r"(?:implement\w{0,3}|add|create|build|refactor|rename)\b(?! up)",
        r"(?:implementier\w{0,3}|fuge|erstelle?|implementa|anade|crea|ajoute[rz]?|cree[rz]?|aggiungi|adiciona|voeg)\b",
    ),
    _intent(
        "task",
        r"(?:write|draft|translate|summari[sz]e|list|generate|convert|calculate|book|schedule|send)\b",
        r"(?:remove|delete|replace|schreibe?|ubersetze?|fasse?|berechne|entferne|losche|ersetze|escribe)\b",
        r"(?:traduce|resume|calcula|borra|reemplaza|ecris|redige|traduis|calcule|supprime|remplace|scrivi)\b",
        r"(?:traduci|riassumi|calcola|escreva|traduza|schrijf|vertaal)\b",
    ),
)
"""The first match decides, so special patterns come before general ones. For folded text; repetitions are bounded."""

_REPLY = _any(
    r"hi|hey|hello|good (?:morning|evening|night|afternoon)|thanks?|thank you|thx|ty|ok|okay|k|yes|yep|yeah|no|nope",
    r"sure|bye|goodbye|see you|great|nice|cool|perfect|done|lol|haha|hm{1,5}",
    r"hallo|guten (?:morgen|tag|abend)|gute nacht|danke|vielen dank|ja|nein|tschuss|super|passt",
    r"hola|buenos dias|buenas(?: tardes| noches)?|gracias|muchas gracias|si|vale|adios|perfecto",
    r"bonjour|bonsoir|bonne nuit|salut|merci|merci beaucoup|oui|non|d'accord|au revoir",
    r"ciao|buongiorno|buonasera|grazie|va bene|ola|bom dia|boa noite|obrigad[oa]|sim|nao|tchau",
    r"hoi|dank je|bedankt|nee|doei",
)

COURTESY_TURN = re.compile(rf"{_REPLY}(?:[ ,.!]{{1,3}}{_REPLY}){{0,3}}[ .!\u2026]{{0,5}}")
"""A turn of nothing but greetings, thanks, assents or goodbyes."""

STACK_TRACE = re.compile(
    r"Traceback \(most recent call last\)|^\s{0,8}at [\w.$<>]{1,200}\(|^(?:[\w.]{1,100})?(?:Error|Exception): "
    r"|(?<![\w.])[A-Z]\w{0,60}(?:Error|Exception): |\bpanic: |Segmentation fault|\bexit(?:ed with)? code [1-9]"
    r"|\bSQLSTATE\b|^npm ERR!|^E\s{3}",
    re.MULTILINE,
)
"""Output of a failing program."""


FALLBACK_MODE: InteractionMode = "GENERAL"
"""The mode for no intent, `default` and every unknown intent."""

MAX_INTENT_CHARS = 400
"""Characters to match from the beginning: a turn states its intent first, or no rule is certain."""

MAX_TRACE_CHARS = 4_000
"""Characters to search for a stack trace: it may follow an introduction."""

LEADING_PUNCTUATION = "\u00bf\u00a1\"'*-#>( "
"""Characters to skip before the first word, such as the Spanish question mark."""

MAX_INTENT_NAME_CHARS = 60

MAX_COURTESY_TURN_CHARS = 60
"""A longer turn is more than a greeting, thanks or an assent."""


def mode_of_intent(intent: str | None, modes: Mapping[str, InteractionMode]) -> InteractionMode:
    """Return the mode of an intent, ignoring case and surrounding spaces; `FALLBACK_MODE` for unknown intents.

    `modes` is the table of intents, in lower case.
    """
    return modes.get((intent or "")[:MAX_INTENT_NAME_CHARS].strip().lower(), FALLBACK_MODE)


def intent_of(text: str) -> str | None:
    """Return the intent of the beginning of a text, in several languages; None if no rule is sure."""
    if STACK_TRACE.search(text[:MAX_TRACE_CHARS]):
        return "error"
    head = " ".join(fold(text[:MAX_INTENT_CHARS]).split()).lstrip(LEADING_PUNCTUATION)
    if len(head) <= MAX_COURTESY_TURN_CHARS and COURTESY_TURN.fullmatch(head):
        return "general"
    return next((intent for intent, pattern in INTENT_PATTERNS if pattern.match(head)), None)
