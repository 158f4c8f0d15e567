"""The forms of sentences that state a fact. Pure: data, and one look-up by first words.

Each pattern is looked for in `Sentence.spaced`. Every repetition is bounded or of one character class, so that each is
linear in the sentence. A form that needs a telling value counts only with a name, a number or a date right behind it:
`The deploy target is fly.io` states something, `The weather is nice` passes.
"""

import re
from typing import NamedTuple

from agents.rules.time_words import MONTHS, NUMBERS, WEEKDAYS

LOOKED_AT = 5
"""Words behind a form among which the telling one is."""


class Form(NamedTuple):
    """A pattern, whether what stands behind it must be telling, and whether its first person has to be somebody."""

    pattern: re.Pattern[str]
    telling: bool
    own: bool


def _form(pattern: str, *, telling: bool = True, own: bool = True) -> Form:
    return Form(re.compile(pattern), telling, own)


_KIN = (
    r"(?:(?:older |younger |big |little |twin |grand|step|ex-)?(?:sister|brother|mother|father|mum|mom|dad|wife|"
    r"husband|partner|girlfriend|boyfriend|daughter|son|cousin|aunt|uncle|niece|nephew|mother-in-law|father-in-law|boss|"
    r"manager|flatmate|roommate|neighbour|neighbor|dentist|doctor|dog|cat|grandmother|grandfather|grandma|grandpa))"
)
_TRADE = (
    r"(?:teacher|nurse|doctor|engineer|developer|programmer|designer|student|lawyer|accountant|writer|novelist|author|"
    r"journalist|musician|photographer|carpenter|electrician|plumber|chef|cook|baker|farmer|researcher|scientist|"
    r"architect|librarian|translator|consultant|freelancer|founder|manager|paramedic|pharmacist|midwife|vet|dentist|"
    r"pilot|driver|vegetarian|vegan|diabetic|widow|widower|twin|grandmother|grandfather)"
)
_STATE = (
    r"(?:vegan|vegetarian|diabetic|left-handed|right-handed|colou?r-?blind|dyslexic|coeliac|celiac|pregnant|married|"
    r"divorced|retired|asthmatic|lactose intolerant|deaf)"
)
_LIVES = r"(?:lives?|works?|studies|study|teach|teaches|grew up|was born|were born|comes? from)"
_AT = r"(?:in|at|for|near|on|from|with)"
_NOT = r"(?!not |no )"

FORMS: tuple[Form, ...] = (
    # Of the speaker.
    _form(rf"^ (?:i|we) (?:still |now |both |also )?{_LIVES} (?:{_AT} )?"),
    _form(rf"^ (?:i'm|i am) (?:a |an )(?:[^ ,]+ ){{0,2}}{_TRADE} ", telling=False),
    _form(rf"^ (?:i'm|i am|we're|we are) {_NOT}(?:now )?{_STATE} ", telling=False),
    _form(r"^ (?:i'm|i am) (?=\d\d (?:years old|and|now|$))", telling=False),
    _form(r"^ my (?:full |first |last |middle )?name(?: is|'s) ", own=True),
    _form(r"^ (?:my|our) (?:[^ ,]+ ){1,4}(?:is|are) (?:called|named) "),
    _form(
        r"^ (?:i|we)(?: have|'ve got| have got)(?: [^ ,]+){0,3} (?:sisters?|brothers?|kids|children|sons?|daughters?|"
        r"dogs?|cats?|grandchildren|twins|siblings) ",
        telling=False,
    ),
    _form(r"^ (?:we|i) (?:now |still |currently )?(?:use|run|host|deploy|store|keep|develop) (?:[^ ,]+ ){0,3}?"),
    # Of people.
    _form(rf"^ my {_KIN} (?:[^ ,]+ )?{_LIVES} (?:{_AT} )?"),
    _form(rf"^ my {_KIN} (?:[^ ,]+ )?(?:is|'s) an? (?:[^ ,]+ ){{0,2}}{_TRADE} ", telling=False),
    # Of things with a name of their own.
    _form(
        r"^ (?:and |also |so |actually ,? ?|correction [,:] )?(?:the|our|my) (?:[^ ,:]+ ){1,5}?(?:is|are) (?:now |"
        r"still |currently |called |always )?(?:at |on |in |from |called |named |the |a |an )*"
    ),
    _form(
        r"^ (?:the|our|my) (?:[^ ,:]+ ){1,5}?(?:runs on|runs at|lives (?:on|at|in)|listens on|starts (?:at|on)|"
        r"opens (?:at|on)|closes (?:at|on)|costs|ends (?:at|on)|leaves at|expires on|takes place (?:on|in|at)) "
    ),
    _form(
        r"^ (?:actually ,? ?)?(?:we|i|they)(?:'ve| have)? (?:just |now )?(?:moved|switched|migrated|changed|renamed) "
        r"(?:[^ ,:]+ ){0,6}?(?:to|onto) "
    ),
    # German, Spanish, French.
    _form(
        r"^ (?:ich|wir) (?:wohne|wohnen|lebe|leben|arbeite|arbeiten) (?:jetzt |noch |seit [^ ]+ )?(?:in|bei|fur|am) "
    ),
    _form(r"^ (?:der|die|das|unser|unsere|mein|meine) (?:[^ ,:]+ ){1,4}?(?:ist|sind|heisst|lauft|kostet) (?:jetzt )?"),
    _form(r"^ (?:vivo|vivimos|trabajo|trabajamos) (?:ahora )?(?:en|para|con) "),
    _form(r"^ (?:el|la|los|las|nuestro|nuestra|mi) (?:[^ ,:]+ ){1,5}?(?:es|esta|son|se llama|cuesta) (?:ahora )?"),
    _form(r"^ (?:j'habite|je vis|je travaille|nous habitons|on habite) (?:maintenant )?(?:a|en|chez|pour|au) "),
    _form(r"^ (?:le|la|les|notre|mon|ma) (?:[^ ,:]+ ){1,5}?(?:est|sont|s'appelle|coute) (?:maintenant )?"),
)
"""All forms."""

FIRST_WORDS = frozenset(
    [
        "i",
        "we",
        "i'm",
        "we're",
        "my",
        "our",
        "the",
        "they",
        "and",
        "also",
        "so",
        "actually",
        "correction",
        "ich",
        "wir",
        "der",
        "die",
        "das",
        "unser",
        "unsere",
        "mein",
        "meine",
        "vivo",
        "vivimos",
        "trabajo",
        "trabajamos",
        "el",
        "la",
        "los",
        "las",
        "nuestro",
        "nuestra",
        "mi",
        "j'habite",
        "je",
        "nous",
        "on",
        "le",
        "les",
        "notre",
        "mon",
        "ma",
    ]
)
"""How every form begins."""

_OWN = re.compile(r" (?:i|i'm|i've|my|mine|me|ich|mein|meine|mi|vivo|trabajo|je|j'habite|mon|ma) ")
_UNSURE = re.compile(
    r" (?:if|unless|would|could|might|may|maybe|perhaps|probably|possibly|apparently|supposedly|suppose|guess|wish|"
    r"hope|hopefully|imagine|pretend|joke|joking|think|thought|believe|seems?|looks? like|used to|should|wenn|falls|"
    r"wahrscheinlich|vielleicht|glaube|denke|hoffe|sollte|ware|wurde|konnte|si|quizas|tal vez|creo|ojala|seria|podria|"
    r"peut-etre|je crois|je pense|serait|pourrait|devrait|either|or|nothing|nobody|whatever) "
)
"""What makes a statement a guess, a wish or a supposition."""

_DATES = frozenset({*MONTHS, *WEEKDAYS, *(word for word, number in NUMBERS.items() if number > 1)}) - {"may", "mar"}
_MARKED = re.compile(r"[\d._/@]|[^\W_]-\d")


def states_fact(words: list[str], written: list[str], spaced: str, *, somebody: bool) -> bool:
    """Whether a sentence states a fact. `written` are its words as they were written; `somebody` may say `I`."""
    if words[0] not in FIRST_WORDS or _UNSURE.search(spaced) or (not somebody and _OWN.search(spaced)):
        return False
    for form in FORMS:
        match = form.pattern.match(spaced)
        if match and (not form.telling or is_telling(written, spaced.count(" ", 0, match.end()) - 1)):
            return True
    return False


def is_telling(written: list[str], place: int) -> bool:
    """Whether a name, a number or a date stands among the next words."""
    return any(_tells(word) for word in written[place : place + LOOKED_AT])


def _tells(word: str) -> bool:
    first = word[0]
    return (first.isupper() and word not in ("I", "I'm", "I've")) or bool(_MARKED.search(word)) or word in _DATES
