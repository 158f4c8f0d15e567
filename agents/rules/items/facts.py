"""Detect sentences that state a fact. Pure.

Guesses, wishes and suppositions are not facts. `The deploy target is fly.io` is a fact, `The weather is nice` is not.
Every repetition in a pattern is bounded or of one character class, so matching is linear in the sentence.
"""

import re
from typing import NamedTuple

from agents.rules.text.dates import MONTHS, NUMBER_WORDS, WEEKDAYS


class FactPattern(NamedTuple):
    """`triggers`: at least one is required; `needs_specific_value`: a name, a number or a date must follow."""

    triggers: frozenset[str]
    pattern: re.Pattern[str]
    needs_specific_value: bool


def _pattern(triggers: str, pattern: str, *, needs_value: bool = True) -> FactPattern:
    return FactPattern(frozenset(triggers.split()), re.compile(pattern), needs_value)


OPENING_PATTERN = (
    r"^ (?:(?:and|also|so|no(?! (?:vivo|vivimos|trabajo|trabajamos) )|but|now|yes|yeah|yep|oh|well|wow|hey|thanks|btw|"
    r"by the way|lately|und|also|y|et|"
    r"(?:hey|thanks) [^ ,]+(?= ,)) (?:[,!] ?)?|actually (?:, ?)?|correction [,:] ){0,2}"
)
"""Up to two openings before the subject of a sentence."""

_NO_NOUN = (
    r"(?:i|you|he|she|it|we|they|me|him|them|us|this|that|these|those|there|here|who|which|what|how|why|when|where|"
    r"whoever|everything|something|anything|nothing|everybody|everyone|somebody|someone|nobody|one|ones|all|both|some|"
    r"none|most|many|few|only|thing|things|question|problem|point|truth|idea|trouble|trick|answer|reason|joke|rest|is|"
    r"are|was|were|be|been|has|have|had|do|does|did|can|will|would|not|never|because|as|while|though|although|than|"
    r"he's|she's|it's|that's|i'm|i've|you're|we're|they're|next|moment|today|tomorrow|tonight|yesterday|her|his|their|its|"
    r"your|ich|du|er|sie|es|wir|ihr|man|ist|sind|war|hat|haben|habe|wird|dass|was|wer|wie|wo|wenn|dumme|einzige|nicht|das|"
    r"que|quien|como|no|pas|qui|quoi|ce|ca|el|ella|il|elle|on|je|tu)"
)
NOUN_PATTERN = rf"(?!{_NO_NOUN} )[^ ,:?!]+ "
"""A word of a subject: not a pronoun, verb or conjunction."""

_THING = rf"(?:the |our |my |a |an )?(?:{NOUN_PATTERN}){{1,5}}?"
_VALUE = (
    r"(?:(?:now|still|currently|called|named|at|on|in|from|by|about|the|a|an|for|until|only|just|"
    r"due|scheduled|planned|booked|set|pencilled|hosted|based|written|built|stored|made|always|roughly|around|of|"
    r"[^ ,]+ed(?= on | at | for | by )) )*"
)
_KIN = (
    r"(?:(?:older |younger |big |little |twin |grand|step|ex-)?(?:sister|brother|mother|father|mum|mom|dad|wife|"
    r"husband|partner|girlfriend|boyfriend|daughter|son|cousin|aunt|uncle|niece|nephew|mother-in-law|father-in-law|"
    r"sister-in-law|brother-in-law|boss|manager|flatmate|roommate|neighbour|neighbor|dentist|doctor|dog|cat|"
    r"grandmother|grandfather|grandma|grandpa|friend|best friend|colleague))"
)
_TRADE = (
    r"(?:teacher|nurse|doctor|engineer|developer|programmer|designer|student|lawyer|accountant|writer|novelist|author|"
    r"journalist|musician|photographer|carpenter|electrician|plumber|chef|cook|baker|farmer|researcher|scientist|"
    r"architect|librarian|translator|consultant|freelancer|founder|manager|paramedic|pharmacist|midwife|vet|dentist|"
    r"pilot|driver|vegetarian|vegan|diabetic|widow|widower|twin|grandmother|grandfather|counselor|counsellor|artist|"
    r"painter|coach|therapist|veteran|surgeon|analyst|biologist|chemist|physicist|historian|gardener|firefighter|"
    r"woman|mom|mum|dad|mother|father|parent|immigrant|runner|cyclist|swimmer|gamer|dancer|singer|guitarist|pianist|"
    r"entrepreneur|veterinarian|barista|waiter|waitress|actor|actress|editor|chemist)"
)
_STATE = (
    r"(?:vegan|vegetarian|diabetic|left-handed|right-handed|colou?r-?blind|dyslexic|coeliac|celiac|pregnant|married|"
    r"divorced|retired|asthmatic|lactose intolerant|deaf)"
)
_LIVES = r"(?:lives?|works?|studies|study|teach|teaches|grew up|was born|were born|comes? from)"
_DOES = (
    r"(?:lives|works|studies|teaches|comes|costs|starts|opens|closes|ends|leaves|arrives|expires|"
    r"runs|listens|takes)"
)
_AT = r"(?:in|at|for|near|on|from|with|to|until|by|place|as)"

FACT_PATTERNS: tuple[FactPattern, ...] = (
    # About the speaker.
    _pattern(
        "live lives work works study studies teach teaches grew born come comes",
        rf"{OPENING_PATTERN}(?:i|we) (?:still |now |both |also )?{_LIVES} (?:{_AT} )?(?:the |an? )?",
    ),
    _pattern("i'm am", rf"{OPENING_PATTERN}(?:i'm|i am) (?:a |an )(?:[^ ,]+ ){{0,2}}{_TRADE} ", needs_value=False),
    _pattern("i'm am we're are", rf"{OPENING_PATTERN}(?:i'm|i am|we're|we are) (?:now )?{_STATE} ", needs_value=False),
    _pattern("i'm am", rf"{OPENING_PATTERN}(?:i'm|i am) \d\d (?:years old|and|now|$)", needs_value=False),
    _pattern(
        "have i've we've",
        rf"{OPENING_PATTERN}(?:i|we)(?: have|'ve got| have got)(?: [^ ,]+){{0,2}} (?:sisters?|brothers?|kids|children|"
        r"sons?|daughters?|dogs?|cats?|grandchildren|twins|siblings) "
        r"(?=$|, |and |called |named |who |aged |from |now |too )",
        needs_value=False,
    ),
    _pattern(
        "have i've we've",
        rf"{OPENING_PATTERN}(?:i|we)(?: have|'ve got| have got) (?:an? )(?:{NOUN_PATTERN}){{1,4}}?"
        r"(?:on|at|called|named|with) ",
    ),
    _pattern(
        "use run host deploy store",
        rf"{OPENING_PATTERN}(?:we|i) (?:now |still |currently )?(?:use|run|host|deploy|store) "
        rf"(?:{NOUN_PATTERN}){{0,3}}?(?:on |in )?",
    ),
    _pattern("i'm am we're are", rf"{OPENING_PATTERN}(?:i'm|i am|we're|we are) (?:originally |both )?from "),
    _pattern(
        "i've we've have",
        rf"{OPENING_PATTERN}(?:i've|we've|i have|we have) (?:known|had|lived|worked|played|owned|run|"
        r"been (?:living|working|playing|learning|studying|practi[cs]ing|teaching|training|dating|writing|married|"
        r"together|friends|here|vegan|vegetarian|sober|at)) "
        r"(?:[^ ,]+ ){0,6}?(?:for|since) "
        r"(?:about |almost |over |nearly |the last |the past |more than |a |an )?",
    ),
    _pattern(
        "adopted bought founded opened launched joined enrolled graduated",
        rf"{OPENING_PATTERN}(?:i|we)(?:'ve| have)? (?:just |recently |finally |both )?(?:adopted|bought|founded|opened|"
        r"launched|joined|enrolled in|graduated from) (?:an?|my|our|two|three) [^ ,]+ [^ ,]",
        needs_value=False,
    ),
    _pattern(
        "got lost quit",
        rf"{OPENING_PATTERN}(?:i|we)(?:'ve| have)? (?:just |recently |finally )?(?:got (?:married|engaged|divorced|"
        r"promoted|hired|laid off)|(?:lost|quit) my job) ",
        needs_value=False,
    ),
    _pattern(
        "play speak own drive coach collect volunteer",
        rf"{OPENING_PATTERN}i (?:also |still |both )?(?:play|speak|own|drive|coach|collect|volunteer) "
        rf"(?:the |an? |my |at |for )?{NOUN_PATTERN}",
        needs_value=False,
    ),
    # About people and things.
    _pattern(
        "love loves like likes hate hates enjoy enjoys",
        rf"{OPENING_PATTERN}(?:my|our) (?:{_KIN}|kids|children|parents|sons|daughters|dogs|cats) (?:[^ ,]+ )?"
        rf"(?:really |just |also )?(?:loves?|likes?|hates?|enjoys?) (?:the |to |an? |all )?{NOUN_PATTERN}",
        needs_value=False,
    ),
    _pattern("is", rf"{OPENING_PATTERN}my {_KIN} (?:[^ ,]+ )?is an? (?:[^ ,]+ ){{0,2}}{_TRADE} ", needs_value=False),
    _pattern(
        "lives works studies teaches comes costs starts opens closes ends leaves arrives expires runs listens takes",
        rf"{OPENING_PATTERN}{_THING}{_DOES} {_AT} (?:the |an? )?",
    ),
    _pattern(
        "is are",
        rf"{OPENING_PATTERN}{_THING}(?:is|are) (?!about to |going to |getting |not |so |too |very |all |what |how |"
        rf"why |where |when |the (?:best|worst|same) ){_VALUE}",
    ),
    _pattern("isn't not", rf"{OPENING_PATTERN}{_THING}(?:isn't|is not) (?:[^ ,]+ ){{1,4}}(?:, )?but "),
    _pattern("cost costs", rf"{OPENING_PATTERN}{_THING}costs? (?:us |me )?(?:only |about |around )?"),
    _pattern(
        "moved switched migrated changed renamed",
        rf"{OPENING_PATTERN}(?:we|i|they)(?:'ve| have)? (?:just |now )?(?:moved|switched|migrated|changed|renamed) "
        rf"(?:{NOUN_PATTERN}){{1,5}}(?:to|onto) ",
    ),
    # German, Spanish, French.
    _pattern(
        "wohne wohnen lebe leben arbeite arbeiten",
        rf"{OPENING_PATTERN}(?:ich|wir) (?:wohne|wohnen|lebe|leben|arbeite|arbeiten) (?:jetzt |noch )?"
        r"(?:in|bei|fur|am) ",
    ),
    _pattern(
        "ist sind heisst lauft kostet",
        rf"{OPENING_PATTERN}(?:der|die|das|unser|unsere|mein|meine) (?:{NOUN_PATTERN}){{1,4}}?"
        r"(?:ist|sind|heisst|lauft|kostet) (?:jetzt |seit |auf |am |um |in |der |die |das )*",
    ),
    _pattern(
        "vivo vivimos trabajo trabajamos",
        rf"{OPENING_PATTERN}(?:vivo|vivimos|trabajo|trabajamos) (?:ahora )?(?:en|para|con) ",
    ),
    _pattern(
        "es esta son llama cuesta",
        rf"{OPENING_PATTERN}(?:el|la|los|las|nuestro|nuestra|mi) (?:{NOUN_PATTERN}){{1,5}}?"
        r"(?:es|esta|son|se llama|cuesta) (?:ahora |en |a |el |la |las )*",
    ),
    _pattern(
        "j'habite vis travaille habitons habite",
        rf"{OPENING_PATTERN}(?:j'habite|je vis|je travaille|nous habitons|on habite) (?:maintenant )?"
        r"(?:a|en|chez|pour|au) ",
    ),
    _pattern(
        "est sont s'appelle coute",
        rf"{OPENING_PATTERN}(?:le|la|les|notre|mon|ma) (?:{NOUN_PATTERN}){{1,5}}?(?:est|sont|s'appelle|coute) "
        r"(?:maintenant |a |au |le |la |en )*",
    ),
)


LOOKAHEAD_WORDS = 2
"""Words after a pattern to search for a specific value."""

_TRIGGERS = frozenset().union(*(pattern.triggers for pattern in FACT_PATTERNS))

FIRST_PERSON = re.compile(
    r" (?:i|i'm|i've|my|mine|me|we|our|us|ich|mein|meine|mi|vivo|trabajo|je|j'habite|mon|ma|wir|unser) "
)
UNCERTAIN = re.compile(
    r" (?:if|unless|would|could|might|may (?:be|have|not|need|want|take|get|go|come|also|well|cost)|maybe|"
    r"perhaps|probably|possibly|apparently|supposedly|suppose|guess|wish|"
    r"hope|hopefully|imagine|pretend|joke|joking|think|thought|believe|seems?|looks? like|used to|should|wenn|falls|"
    r"wahrscheinlich|vielleicht|glaube|denke|hoffe|sollte|ware|wurde|konnte|si(?! chiama)|quizas|tal vez|creo|ojala|"
    r"seria|podria|peut-etre|je crois|je pense|serait|pourrait|devrait|either|or|nothing|nobody|whatever|whether) "
)
"""Words of a guess, a wish or a supposition."""

_DATES = {*MONTHS, *WEEKDAYS, *(word for word, number in NUMBER_WORDS.items() if number > 1)} - {"may", "mar"}
_NUMBER_OR_IDENTIFIER = re.compile(r"[\d._/@]")
_CAPITALISED_PRONOUNS = frozenset({"I", "I'm", "I've", "I'd", "I'll"})
_CONJUNCTIONS = {"und", "aber", "weil", "y", "pero", "porque", "et", "mais", "car"}
_CLAUSE_STARTS = _CONJUNCTIONS | {",", ":", "?", "!", "and", "but", "because", "so", "since", "when", "while", "than"}


def states_fact(words: list[str], written: list[str], spaced: str, *, has_first_person: bool) -> bool:
    """True if a sentence states a fact.

    `words` are folded, `written` are as written. Without `has_first_person`, the first person does not count.
    """
    if _TRIGGERS.isdisjoint(words) or UNCERTAIN.search(spaced):
        return False
    if not has_first_person and FIRST_PERSON.search(spaced):
        return False
    for fact in FACT_PATTERNS:
        match = None if fact.triggers.isdisjoint(words) else fact.pattern.match(spaced)
        value_at = spaced.count(" ", 0, match.end()) - 1 if match else 0
        if match and (not fact.needs_specific_value or has_specific_value(written, value_at)):
            return True
    return False


def has_specific_value(written: list[str], start: int) -> bool:
    """True if a name, a number or a date is among the `LOOKAHEAD_WORDS` from `start`, within the clause."""
    for word in written[start : start + LOOKAHEAD_WORDS]:
        if word in _CLAUSE_STARTS:
            return False
        is_name = word[0].isupper() and word not in _CAPITALISED_PRONOUNS
        if is_name or _NUMBER_OR_IDENTIFIER.search(word) or word in _DATES:
            return True
    return False
