"""Read the claim of a sentence: its subject and an attribute that has one value at a time. Pure.

Enters: a sentence and its speaker. Leaves: a claim, or None. Guaranteed: claims in the first person are per speaker;
statements that can be true together have no claim; guesses, suppositions and questions have none. A wrong claim hides
something true, so the attribute must have a single value (a person lives in one place, but likes many), and the value
must be a value: `The deploy target is unclear` supersedes nothing.

A name is a known first name, or follows a title. After a German verb the value must be a known one, since every noun
has a capital letter.

English, German, Spanish, French, Italian and Portuguese. Matching is linear in the sentence.
"""

import re
from typing import NamedTuple

from agents.rules.items.claim_values import READERS_AMONG_NOUNS, VALUE_READERS, Words, is_person, read_product
from agents.rules.items.facts import NOUN_PATTERN, OPENING_PATTERN, UNCERTAIN, has_specific_value
from agents.rules.text.passages import Sentence, parse_sentence, written_words

_SLOT = (
    r"(?:target|port|deadline|budget|name|password|passphrase|address|email|e-mail|number|date|birthday|database|host|"
    r"hostname|region|provider|version|owner|limit|timeout|price|rent|fee|salary|capital|timezone|colou?r|size|title|"
    r"url|domain|branch|bucket|id|code|pin|interval|threshold|quota|currency|framework|"
    r"ziel|frist|passwort|adresse|nummer|datum|geburtstag|datenbank|preis|miete|grenze|"
    r"destino|puerto|plazo|presupuesto|nombre|contrasena|direccion|numero|fecha|cumpleanos|precio|alquiler|"
    r"cible|delai|nom|anniversaire|prix|loyer|limite)"
)
"""Nouns with one value at a time."""

_SLOT_OF = (
    r"(?:destino|puerto|plazo|presupuesto|contrasena|direccion|fecha|precio|alquiler|limite|cible|port|delai|adresse|"
    r"date|prix|loyer|destinazione|porta|scadenza|bilancio|indirizzo|data|prezzo|affitto|prazo|orcamento|endereco|preco|"
    r"renda)"
)
"""The same in languages in which the distinguishing noun follows."""

_PERSONAL = (
    r"(?:name|birthday|age|address|email|e-mail|email address|phone number|favou?rite number|geburtstag|adresse|"
    r"telefonnummer|handynummer|cumpleanos|direccion|nombre|numero de telefono|telefono|correo|anniversaire|nom|"
    r"numero de telephone|numero di telefono|adresse e-mail|compleanno|indirizzo|nome|aniversario|morada|endereco|"
    r"numero de telefone|telemovel)"
)
"""Attributes of a person with one value at a time."""

_UNIQUE = (
    r"(?:mother|father|mum|mom|dad|wife|husband|partner|girlfriend|boyfriend|boss|landlord|mutter|vater|frau|chefin|chef|"
    r"madre|padre|mujer|marido|mere|pere|femme|mari|moglie|marito|mae|pai|mulher)"
)
"""Relatives that are unique: there may be two sisters, but not two mothers."""

_ROLE = (
    r"(?:dentist|doctor|gp|boss|line manager|manager|landlord|landlady|therapist|hairdresser|team lead|supervisor|"
    r"accountant|lawyer|vet|wife|husband|girlfriend|boyfriend|"
    r"dentista|medico|medica|jefe|jefa|casero|casera|terapeuta|abogado|abogada|marido|mujer|esposa|"
    r"dentiste|medecin|patron|patronne|proprietaire|avocat|avocate|mari|femme|comptable|"
    r"capo|padrone di casa|avvocato|avvocata|marito|moglie|commercialista|"
    r"chefe|senhorio|senhoria|advogado|advogada|mulher|contabilista)"
)
"""Roles that one person has for another one."""

_ROLE_DE = (
    r"(?:zahnarzt|zahnarztin|hausarzt|hausarztin|chef|chefin|vermieter|vermieterin|therapeut|therapeutin|steuerberater|"
    r"steuerberaterin|teamleiter|teamleiterin|anwalt|anwaltin|frau|mann)"
)
_THING = (
    r"(?:food|drink|animal|season|sport|fruit|dish|language|comida|bebida|deporte|plat|boisson|cibo|piatto|bevanda|"
    r"animale|desporto|esporte)"
)
_WORK = (
    r"(?:band|film|movie|book|song|singer|city|editor|artist|author|game|team|series|restaurant|grupo|pelicula|libro|"
    r"cancion|ciudad|groupe|livre|chanson|ville|gruppo|canzone|citta|banda|filme|livro|musica|cidade)"
)
"""Favourite things that have a name."""

_COLOUR = r"(?:colou?r|couleur|colore|cor)"
_FAVOURITE = r"(?:favorit[oae]|favori|preferid[oa]|preferee?|preferit[oa])"
_OUR_ONE = r"(?:database|datenbank|base de datos|base de donnees|base de dados|issue tracker|cloud provider)"
"""Nouns that are unambiguous after `our`, without a further noun."""

_SERVER = r"(?:api|server|site|website|backend|frontend|database|cluster|blog|service|website|shop)"
_EVENT = (
    r"(?:meeting|standup|stand-up|kickoff|kick-off|retro|release|launch|demo|party|wedding|exam|interview|appointment|"
    r"call|workshop|review|besprechung|termin|treffen|prufung|hochzeit|reunion|cita|lanzamiento|examen|boda|"
    r"rendez-vous|lancement|mariage|riunione|appuntamento|lancio|esame|reuniao|consulta|lancamento|exame)"
)
_PROJECT = (
    r"(?:project|product|company|app|team|projekt|produkt|firma|proyecto|producto|empresa|projet|produit|entreprise|"
    r"progetto|prodotto|azienda|projeto|produto)"
)

_THE = r"(?:the|our|der|die|das|unser|unsere|el|la|nuestro|nuestra|le|notre)"
_NEW = re.compile(r"\b(?:new|current|actual|latest|neue|neuer|neues|nuevo|nueva|nouveau|nouvelle) ")
_IS = r"(?:is|are|will be|ist|sind|es|est|sera|wird)"
_THEN = r"(?:now |jetzt |nun |ahora |maintenant |ora |agora |called |on |at |in |the |am |el |le )*"
_COMPOUND = r"[^ ,:?!]{3,}(?:ziel|frist|passwort|adresse|nummer|datum|datenbank|preis|grenze)"
_SUBJECT = rf"(?P<subject>(?:(?:{NOUN_PATTERN}){{1,4}}?{_SLOT}|{_COMPOUND})(?: of (?:the )?[^ ,:?!]+)?)"
_SUBJECT_OF = rf"(?P<subject>{_SLOT} (?:of|for) (?:the |our )?(?:{NOUN_PATTERN}){{1,3}}?)"
_NOT_BUT = r"(?:isn't|is not|ist nicht|no es|n'est pas) (?:[^ ,]+ ){1,4}(?:, )?(?:but|sondern|sino|mais) "
_MY = r"(?:my|mein|meine|mi|mon|ma|(?:il )?mio|(?:la )?mia|(?:o )?meu|(?:a )?minha)"
_OUR = (
    r"(?:our|unser|unsere|nuestro|nuestra|notre|(?:il )?nostro|(?:la )?nostra|(?:o )?nosso|(?:a )?nossa)"
    r"(?: current| new)?"
)
_EVENT_ARTICLE = r"(?:the|der|die|das|el|la|le|il|lo|o|a)"
_ARTICLE = r"(?:the|our|der|die|das|unser|unsere|el|la|nuestra|le|notre|il|lo|nostra|o|a|nossa)"
_NOW = (
    r"(?:(?:now|still|currently|jetzt|nun|inzwischen|mittlerweile|ahora|actualmente|maintenant|desormais|ora|adesso|"
    r"agora) )?"
)
_BE = rf"{_NOW}(?:is|ist|es|est) {_NOW}"
_BE_CALLED = (
    rf"{_NOW}(?:(?:is|are) (?:now )?called|(?:is|are) named|heisst|se llama|s'appelle|si chiama|chama-se) {_NOW}"
)
_OWN = rf"{OPENING_PATTERN}{_NOW}"
_NAMED = rf"{OPENING_PATTERN}(?:[oa] )?(?P<name>{NOUN_PATTERN}(?:{NOUN_PATTERN})??){_NOW}"
_KIN_OF = rf"{OPENING_PATTERN}(?P<name>[^ ,:?!]+'s) (?P<subject>{_UNIQUE}) {_NOW}"
_RELATED = rf"{OPENING_PATTERN}{_MY} (?P<subject>{_UNIQUE}) {_NOW}"
_LIVES = r"(?:lives|is living|wohnt|lebt|vive|habite|vit|abita|mora) "
_IN = rf"{_NOW}(?:in|en|a|em) "
_WORKS = (
    r"(?:works (?:now )?(?:at|for)|arbeitet (?:jetzt )?(?:bei|fur)|trabaja (?:ahora )?para|travaille (?:maintenant )?"
)
_WORKS += r"(?:chez|pour)|lavora (?:ora )?(?:alla|per)|trabalha (?:agora )?(?:na|no|para a|para o)) "
_RUNS = (
    r"(?:runs (?:now )?on|is (?:now )?(?:running |hosted |deployed )?on|lauft (?:jetzt |nun )?auf|corre (?:ahora )?en|"
    r"tourne (?:maintenant )?sur|gira (?:ora )?su|corre (?:agora )?(?:no|na|em)) "
)
_DETERMINER = (
    r"(?:an?|one|another|other|every|each|any|some|no|this|that|these|those|my|your|his|her|its|our|their|"
    r"(?:k|m|d|s)?ein(?:e[mnrs]?)?|(?:ihr|unser|euer|eur|jed|dies|jen|manch|welch|ander)(?:e[mnrs]?)?|beide|alle|"
    r"una?|uno|unos|unas|otro|otra|cada|algun|alguna|ningun|ninguna|este|esta|ese|esa|aquel|aquella|mi|mis|tu|tus|su|"
    r"sus|vuestro|vuestra|nuestro|nuestra|une|des|autre|chaque|aucune?|quelque|ce|cet|cette|mon|ma|ton|ta|son|sa|notre|"
    r"votre|leur|altr[oa]|ogni|qualche|nessun[oa]?|quest[oa]|quell[oa]|mi[oa]|tu[oa]|su[oa]|nostr[oa]|vostr[oa]|loro|"
    r"uma?|outr[oa]|algum|alguma|nenhum|nenhuma|ess[ea]|aquele|aquela|meu|minha|teu|tua|seu|sua|noss[oa]|voss[oa])"
)
"""Possessives, indefinites and demonstratives: the event depends on the speaker, or is not specific."""

_OF_EVENT = (
    rf"(?<! no )(?!(?:{_EVENT_ARTICLE} )?{_DETERMINER} )(?:{NOUN_PATTERN}){{0,2}}?(?:l')?{_EVENT}(?: de [^ ,:?!]+)?"
)
_IS_ON = rf"(?:{_BE}|(?:has )?(?:been )?moved )(?:(?:on|at|for|to|scheduled|planned|moved|am|um|na|no|em) )*"


class ClaimPattern(NamedTuple):
    """A pattern up to the value, the claim that it makes, and the kind of value: a key of `VALUE_READERS`.

    `triggers`: one of these words is required.
    """

    triggers: frozenset[str]
    pattern: re.Pattern[str]
    claim: str
    value: str


def _claim(triggers: str, pattern: str, claim: str, value: str) -> ClaimPattern:
    return ClaimPattern(frozenset(triggers.split()), re.compile(pattern), claim, value)


_COPULAS = "is are ist es est"
_CALLED = "called named heisst llama s'appelle chiama chama-se"
_SAYS = f"{_COPULAS} are will sind wird sera isn't not n'est no"

CLAIM_PATTERNS: tuple[ClaimPattern, ...] = (
    # A person's home.
    _claim(
        "live living wohne wohnen lebe leben vivo vivimos j'habite habitons vis abito moro",
        rf"{_OWN}(?:(?:i|we) (?:now |still )?live in|i'm (?:now )?living in|i am (?:now )?living in|"
        r"(?:ich|wir) (?:wohne|wohnen|lebe|leben) (?:jetzt )?in|(?:wohne|lebe) ich in|"
        r"(?:vivo|vivimos) (?:ahora )?en|(?:j'habite|je vis|nous habitons) (?:maintenant )?a|"
        r"(?:vivo|abito) (?:ora )?a|(?:moro|vivo) (?:agora )?em) ",
        "{own}|lives in",
        "place",
    ),
    _claim("moved", rf"{_OWN}i(?:'ve| have)? (?:just |recently |now )?moved to ", "{own}|lives in", "city"),
    _claim(
        "gezogen umgezogen",
        rf"{OPENING_PATTERN}ich bin (?:jetzt |kurzlich |gerade |letzte woche )?nach ",
        "{own}|lives in",
        "new home",
    ),
    _claim(
        "mude mudado demenage trasferito trasferita mudei-me",
        rf"{_OWN}(?:me (?:he mudado|mude) (?:ahora )?a|j'ai (?:maintenant )?demenage a|mi sono (?:appena |ora )?"
        r"(?:trasferito|trasferita) a|mudei-me (?:agora )?para) ",
        "{own}|lives in",
        "place",
    ),
    _claim("lives living wohnt lebt vive habite vit abita mora", rf"{_NAMED}{_LIVES}{_IN}", "{name}|lives in", "place"),
    _claim(
        "lives living wohnt lebt vive habite vit abita mora",
        rf"{_RELATED}{_LIVES}{_IN}",
        "{own}|{subject}|lives in",
        "place",
    ),
    _claim("lives living", rf"{_KIN_OF}{_LIVES}{_IN}", "{name}|{subject}|lives in", "place"),
    _claim("moved", rf"{_NAMED}(?:has )?(?:just )?moved to ", "{name}|lives in", "city"),
    _claim("moved", rf"{_RELATED}(?:has )?(?:just )?moved to ", "{own}|{subject}|lives in", "city"),
    # A person's employer.
    _claim(
        "work arbeite travaille lavoro trabajo trabalho",
        rf"{_OWN}(?:i (?:now |still |currently )?work (?:now )?(?:at|for)|ich arbeite (?:jetzt )?(?:bei|fur)|"
        r"arbeite ich (?:bei|fur)|trabajo (?:ahora )?para|je travaille (?:maintenant )?(?:chez|pour)|"
        r"lavoro (?:ora )?(?:alla|per)|trabalho (?:agora )?(?:na|no|para a|para o)) ",
        "{own}|works at",
        "company",
    ),
    _claim("works arbeitet trabaja travaille lavora trabalha", rf"{_NAMED}{_WORKS}", "{name}|works at", "company"),
    _claim(
        "works arbeitet trabaja travaille lavora trabalha",
        rf"{_RELATED}{_WORKS}",
        "{own}|{subject}|works at",
        "company",
    ),
    # Roles that a person has for the speaker, or for another person.
    _claim(
        "is es est",
        rf"{OPENING_PATTERN}{_MY} (?P<subject>{_ROLE}) {_NOW}(?:is|es|est) {_NOW}",
        "{own}|{subject}",
        "person",
    ),
    _claim(
        "is", rf"{OPENING_PATTERN}our (?P<subject>team lead|boss|landlord|cto|ceo) is ", "{own}|{subject}", "person"
    ),
    _claim("is", rf"{OPENING_PATTERN}(?P<name>[^ ,:?!]+'s) (?P<subject>{_ROLE}) {_BE}", "{name}|{subject}", "person"),
    _claim(
        "ist", rf"{OPENING_PATTERN}(?:mein|meine) (?P<subject>{_ROLE_DE}) {_NOW}ist {_NOW}", "{own}|{subject}", "person"
    ),
    _claim(
        "heisst", rf"{OPENING_PATTERN}(?:mein|meine) (?P<subject>{_ROLE_DE}) heisst {_NOW}", "{own}|{subject}", "person"
    ),
    # Favourite things.
    _claim(
        _COPULAS, rf"{OPENING_PATTERN}my favou?rite (?P<subject>{_COLOUR}) {_BE}", "{own}|favourite {subject}", "colour"
    ),
    _claim(
        _COPULAS, rf"{OPENING_PATTERN}my favou?rite (?P<subject>{_THING}) {_BE}", "{own}|favourite {subject}", "thing"
    ),
    _claim("ist", rf"{OPENING_PATTERN}meine (?P<subject>lieblingsfarbe) {_BE}", "{own}|{subject}", "colour"),
    _claim(
        "ist",
        rf"{OPENING_PATTERN}meine? (?P<subject>lieblings(?:essen|tier|getrank|sport|obst|gericht)) {_BE}",
        "{own}|{subject}",
        "thing",
    ),
    _claim(
        "es est",
        rf"{OPENING_PATTERN}{_MY} (?P<subject>{_COLOUR}) {_FAVOURITE} {_BE}",
        "{own}|favourite {subject}",
        "colour",
    ),
    _claim(
        "es est",
        rf"{OPENING_PATTERN}{_MY} (?P<subject>{_THING}) {_FAVOURITE} {_BE}",
        "{own}|favourite {subject}",
        "thing",
    ),
    _claim("is", rf"{OPENING_PATTERN}my favou?rite (?P<subject>{_WORK}) {_BE}", "{own}|favourite {subject}", "name"),
    _claim(
        "es est",
        rf"{OPENING_PATTERN}{_MY} (?P<subject>{_WORK}) {_FAVOURITE} {_BE}",
        "{own}|favourite {subject}",
        "name",
    ),
    _claim("ist", rf"{OPENING_PATTERN}meine (?P<subject>lieblingsstadt) {_BE}", "{own}|{subject}", "city"),
    # Projects and servers.
    _claim(
        _CALLED, rf"{OPENING_PATTERN}{_OUR} (?P<subject>{_PROJECT}) {_BE_CALLED}", "{own}|{subject}|is called", "name"
    ),
    _claim("ci", rf"{OPENING_PATTERN}(?:{_ARTICLE} )?(?P<subject>ci) {_NOW}{_RUNS}", "{subject}|runs on", "product"),
    _claim(
        "runs hosted deployed running",
        rf"{OPENING_PATTERN}(?:the|our|my) (?P<subject>(?:{NOUN_PATTERN}){{0,2}}?{_SERVER}) {_NOW}(?:runs (?:now )?on|"
        r"is (?:now )?(?:running|hosted|deployed) on) ",
        "{subject}|runs on",
        "product",
    ),
    _claim(
        "database datenbank base tracker provider",
        rf"{OPENING_PATTERN}(?:our|unsere|unser|nuestra|nuestro|notre|(?:il )?nostro|(?:a )?nossa) "
        rf"(?P<subject>{_OUR_ONE}) {_BE}",
        "{own}|{subject}|is",
        "product",
    ),
    # Dates of events.
    _claim(
        f"{_COPULAS} moved",
        rf"{OPENING_PATTERN}(?:{_EVENT_ARTICLE} )?(?P<subject>{_OF_EVENT}) {_IS_ON}",
        "{subject}|is",
        "when",
    ),
    _claim(
        f"{_COPULAS} moved",
        rf"{OPENING_PATTERN}(?:{_MY}|{_OUR}) (?P<subject>{_OF_EVENT}) {_IS_ON}",
        "{own}|{subject}",
        "when",
    ),
    # Things with one value.
    _claim(
        _COPULAS,
        rf"{OPENING_PATTERN}{_ARTICLE} (?P<subject>{_SLOT_OF} (?:del|de la|de|du|di|della|do|da) [^ ,:?!]+) {_BE}",
        "{subject}|is",
        "specific",
    ),
    _claim(
        _COPULAS,
        rf"{OPENING_PATTERN}{_MY} (?P<subject>{_PERSONAL}) {_IS} (?!not ){_THEN}",
        "{own}|{subject}",
        "specific",
    ),
    _claim(
        "is",
        rf"{OPENING_PATTERN}(?P<name>[^ ,:?!]+'s) (?P<subject>phone number|address|email|email address|birthday) is ",
        "{name}|{subject}",
        "specific",
    ),
    _claim(
        _SAYS, rf"{OPENING_PATTERN}{_THE} {_SUBJECT} (?:{_IS} (?!not ){_THEN}|{_NOT_BUT})", "{subject}|is", "specific"
    ),
    _claim(
        _SAYS, rf"{OPENING_PATTERN}{_THE} {_SUBJECT_OF}(?:{_IS} (?!not ){_THEN}|{_NOT_BUT})", "{subject}|is", "specific"
    ),
    _claim(
        "moved changed switched set raised lowered",
        rf"{OPENING_PATTERN}(?:we|i|they)(?:'ve| have)? (?:just |now )?(?:moved|changed|switched|set|raised|"
        rf"lowered) {_THE} {_SUBJECT} (?:from (?:[^ ]+ ){{1,4}}?)?(?:to|onto) ",
        "{subject}|is",
        "specific",
    ),
    _claim(_SAYS, rf"{OPENING_PATTERN}{_MY} {_SUBJECT} {_IS} (?!not ){_THEN}", "{own}|{subject}", "specific"),
)

_OWN_PREFIX = "speaker:"
_DECIDED = re.compile(
    r"^ (?:[^ ]+ ){0,3}?(?:we|i)(?:'ve| have)? (?:just )?decided to (?:use|go with|take) (?:[^ ,:]+ ){1,4}?for "
    rf"(?:the |our )(?P<subject>(?:{NOUN_PATTERN}){{1,4}}?)(?:instead |, not |, and not |$|now $)"
)
_RESTRICTION = re.compile(
    r" (?:for (?!now )|during |only |except |unless |until |while |when |on weekends|fur |wahrend |nur |solange |para |"
    r"durante |solo |pour |pendant |in (?:the )?(?:staging|production|prod|dev|development|tests?|ci) )"
)
"""Continuations that restrict a value to some cases."""

_AMONG_NOUNS = re.compile(r" (?:ist|sind|wird|arbeitet?|lauft) | (?:alla|na|no) $")
"""Verbs and prepositions of a pattern after which a capitalised word may be any noun."""

_TRIGGERS = frozenset().union(*(pattern.triggers for pattern in CLAIM_PATTERNS))
_COPULA_WITH_ACCENT = re.compile(r"\b[\u00e8\u00e9\u00c8\u00c9]\b")
"""`is` in Italian and Portuguese, which without its accent is `and`."""

_SPELLINGS = ((re.compile(r"\b(favou?rite|colou?r)\b"), lambda match: match[1].replace("ou", "o")),)


def extract_claim(text: str, speaker: str) -> str | None:
    """Return the claim of a sentence; `speaker` is the folded name behind its first person."""
    text = _COPULA_WITH_ACCENT.sub("es", text)
    sentence, written = parse_sentence(text), written_words(text)
    if not sentence.words or sentence.is_question or UNCERTAIN.search(sentence.spaced):
        return None
    if match := _DECIDED.search(sentence.spaced):
        return f"{match['subject'].strip()}|uses"
    if _TRIGGERS.isdisjoint(sentence.words) or len(written) != len(sentence.words):
        return None
    for pattern in CLAIM_PATTERNS:
        match = None if pattern.triggers.isdisjoint(sentence.words) else pattern.pattern.match(sentence.spaced)
        if match and (claim := _claim_of(pattern, match, sentence, written, speaker)):
            return claim
    return None


def is_own_claim(claim: str) -> bool:
    """True if a claim is about its speaker, from a sentence in the first person."""
    return claim.startswith(_OWN_PREFIX)


def _claim_of(
    pattern: ClaimPattern, match: re.Match[str], sentence: Sentence, written: list[str], speaker: str
) -> str | None:
    """Return the claim of a matching pattern; None if its value or its name is invalid."""
    groups = match.groupdict()
    if name := groups.get("name"):
        at = sentence.spaced.count(" ", 0, match.start("name")) - 1
        is_capitalised = all(word[0].isupper() for word in written[at : at + len(name.split())])
        # A capital alone does not make a name: `Customer`, `Oma` and `Oggi` begin sentences, too.
        if not (is_capitalised and is_person(name.removesuffix("'s").split())):
            return None
    subject = _NEW.sub("", groups.get("subject") or "").strip()
    for spelling, canonical in _SPELLINGS:
        subject = spelling.sub(canonical, subject)
    claim = pattern.claim.format(
        subject=subject, own=f"{_OWN_PREFIX}{speaker}", name=(name or "").strip().removesuffix("'s")
    )
    words, at = Words(sentence.words, written), sentence.spaced.count(" ", 0, match.end()) - 1
    if pattern.value == "specific" and _RESTRICTION.search(sentence.spaced, match.end() - 1):
        return None
    if _AMONG_NOUNS.search(match[0]):
        return READERS_AMONG_NOUNS[pattern.value](words, at, claim)
    if pattern.value != "specific":
        return VALUE_READERS[pattern.value](words, at, claim)
    return claim if has_specific_value(written, at) or read_product(words, at, claim) is not None else None
