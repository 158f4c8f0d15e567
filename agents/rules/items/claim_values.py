"""Read the value of a claim: a name, a place, a product, a day, a time, or a favourite thing. Pure.

Enters: the words of a sentence, folded and as written, and the start of the value. Leaves: the name of the value's
attribute, or None. Guaranteed: a state (`slow`, `on holiday`), a list (`Lisbon and Porto`) and a restricted value
(`Bergen during the week`) do not count. A word in lower case is a value only if it is a known one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agents.rules.items.facts import LOOKAHEAD_WORDS
from agents.rules.items.known_names import (
    CITIES,
    COMPANIES,
    COMPANY_FORMS,
    COUNTRIES,
    FIRST_NAMES,
    KIN_NAMES,
    TWO_WORD_CITIES,
)
from agents.rules.text.dates import MONTHS, MONTHS_IN_ITALIAN_AND_PORTUGUESE, WEEKDAYS


class Words(NamedTuple):
    """A sentence's words; both sequences have the same length."""

    folded: Sequence[str]
    written: Sequence[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NOW_WORDS = _words(
    "now currently nowadays instead actually jetzt nun inzwischen mittlerweile aktuell ahora actualmente maintenant "
    "desormais actuellement ora adesso attualmente agora atualmente"
)
"""Words saying that a value is valid now."""

_PHRASES_OF_NOW = ("these days", "from now on", "at the moment", "as of today", "from today")
_ARTICLES = _words("the a el la le l il lo i o os as un der die das den dem al am")
_CONJUNCTIONS = _words("and or und oder y o et ou e but aber pero mais ma mas")
_REASONS = _words("but because since as so which with aber weil seit pero porque desde mais car depuis ma perche mas")
"""Words of a further clause, which may follow a value."""

_TITLES = _words(
    "dr doctor doctora docteur docteure dottor dottoressa doutor doutora prof professor professeur mr mrs ms miss sir "
    "herr herrn frau m mme monsieur madame sr sra senor senora senhor senhora signor signora"
)
_PARTICLES = _words("of the de la von van der den di da do del y")
_PRODUCTS_BY_LAYER: Mapping[str, frozenset[str]] = {
    "host": _words(
        "heroku render railway vercel netlify aws gcp azure cloudflare digitalocean hetzner linode ovh scaleway "
        "fastly fly firebase supabase"
    ),
    "orchestrator": _words("kubernetes k8s nomad openshift docker swarm ecs eks gke podman proxmox vmware lambda"),
    "build tool": _words(
        "jenkins buildkite circleci travis drone teamcity bamboo gitlab github bitbucket gitea forgejo woodpecker "
        "argo tekton"
    ),
    "database": _words(
        "postgres postgresql mysql mariadb sqlite oracle mongodb mongo redis cassandra dynamodb cockroachdb "
        "clickhouse duckdb snowflake bigquery elasticsearch opensearch neo4j couchdb scylla"
    ),
    "queue": _words("kafka rabbitmq nats pulsar sqs"),
    "language": _words("python rust golang typescript javascript java kotlin swift ruby elixir scala haskell"),
    "framework": _words("django flask fastapi rails laravel spring express nextjs react vue angular svelte htmx"),
    "editor": _words("vscode vim neovim emacs intellij pycharm zed sublime"),
    "service": _words(
        "jira linear asana trello notion confluence slack discord teams zoom stripe paypal adyen twilio sendgrid "
        "mailgun auth0 okta keycloak datadog grafana prometheus sentry newrelic"
    ),
}
"""Products that are often written in lower case. A thing runs on one of each layer: on Kubernetes, and on AWS."""

_LAYERS = {product: layer for layer, products in _PRODUCTS_BY_LAYER.items() for product in products}
_PRODUCTS = frozenset(_LAYERS)


_PLATFORMS = _words("linux windows macos mac unix android ios ubuntu debian fedora arm x86 chrome firefox safari")
"""One thing runs on several of these."""

_DAYS = frozenset(WEEKDAYS) | _words(
    "lunedi martedi mercoledi giovedi venerdi sabato domenica segunda terca quarta quinta sexta segunda-feira "
    "terca-feira quarta-feira quinta-feira sexta-feira"
)
_MONTHS = frozenset({*MONTHS, *MONTHS_IN_ITALIAN_AND_PORTUGUESE})
_COLOURS = _words(
    "black white grey gray red green blue yellow orange purple pink brown violet turquoise teal cyan magenta indigo "
    "maroon beige gold silver crimson scarlet lilac lavender olive navy mint coral amber ochre burgundy schwarz weiss "
    "grau rot grun blau gelb lila rosa braun violett turkis orange beige negro blanco gris rojo verde azul amarillo "
    "naranja morado marron violeta turquesa celeste noir blanc rouge vert bleu jaune rose violet brun nero bianco "
    "grigio rosso blu giallo arancione viola marrone azzurro turchese preto branco cinzento vermelho amarelo laranja "
    "roxo castanho cor-de-rosa"
)
_NO_NAME = (
    _DAYS
    | _MONTHS
    | _words(
        "i ok okay ceo cto cfo vp english british american german french spanish italian portuguese dutch swiss "
        "austrian belgian polish czech hungarian romanian greek turkish russian ukrainian swedish norwegian danish "
        "finnish irish scottish welsh canadian mexican brazilian chinese japanese korean indian australian african "
        "european asian catholic protestant muslim jewish buddhist hindu christian nacht tag regen tageslicht hand "
        "home night work school"
    )
)
"""Capitalised words other than names of a person, a place or a company."""

_NO_COMPANY = (
    CITIES
    | COUNTRIES
    | FIRST_NAMES
    | KIN_NAMES
    | _TITLES
    | _words(
        "hr it pr qa ops sales marketing finance legal support god christmas easter thanksgiving natale pasqua noel"
    )
)
"""Capitalised words after `work for` other than companies."""

_NO_THING = _words(
    "not no none unknown unclear undecided secret missing gone expensive cheap bad good full busy empty hot cold warm "
    "fresh sweet sour great nice awful terrible boring hard easy difficult old new different better worse best worst "
    "ready open closed sold still always never very too so quite really what which when where why how that this it "
    "something nothing anything everything one on in at from by for with about under over out away back here there to "
    "than like either neither both nicht kein keine sehr zu so auch no muy tan demasiado tambien ne pas tres trop "
    "aussi non molto troppo anche nao muito tambem"
)
_DIGIT = re.compile(r"\d")
_EXACT = re.compile(r"[\d._/@]")
_STATE = re.compile(r"^[a-z].*(?:ing|ed|ous|ful|able|ible|less|ly)$")
"""Endings of states in lower case; sports end so, too."""

_CLOCK = re.compile(r"^(?:\d{1,2}(?:[.h]\d{2}|am|pm|h|uhr)?)$")
_DENIALS = _words("not nicht no pas non nao of")
_UNITS_OF_TIME = _words("am pm uhr o'clock h heures")


_JOINED_WORDS = 3
"""Words after a conjunction in which another value may stand."""


def _skip(words: Words, at: int, skipped: frozenset[str]) -> int:
    while at < len(words.folded) and words.folded[at] in skipped:
        at += 1
    return at


def _is_capitalised(words: Words, at: int) -> bool:
    return at < len(words.written) and words.written[at][0].isupper() and words.folded[at].split("'")[0] != "i"


def _ends(words: Words, at: int) -> bool:
    """True if the value ends here: before the end, a phrase such as "these days", or a non-restrictive clause."""
    at = _skip(words, at, NOW_WORDS)
    rest = " ".join(words.folded[at:])
    if not rest or rest in _PHRASES_OF_NOW or rest == "!":
        return True
    if words.folded[at] not in {",", *_REASONS, *_CONJUNCTIONS}:
        return False
    for index in range(at, len(words.folded)):
        if words.folded[index] in _CONJUNCTIONS:
            # A conjunction may join another value: `and Porto`, `and at Globex`, `and redis`.
            joined = range(index + 1, min(index + 1 + _JOINED_WORDS, len(words.folded)))
            if not joined or any(_is_capitalised(words, each) or words.folded[each] in _PRODUCTS for each in joined):
                return False
    return True


def _name_end(words: Words, at: int) -> int:
    """Return the index behind a run of capitalised words that begins at `at`; `at` without one."""
    end = _skip(words, at, _TITLES)
    if (
        end >= len(words.folded)
        or {words.folded[end], words.folded[end].removesuffix("s")} & _NO_NAME
        or not _is_capitalised(words, end)
    ):
        return at
    while end < len(words.folded):
        if words.folded[end].endswith("'s") and end > at:
            return at
        joins = words.folded[end] in _PARTICLES and _is_capitalised(words, end + 1)
        if not (joins or _is_capitalised(words, end) or _DIGIT.search(words.folded[end])):
            break
        end += 1
    return end


def read_name(words: Words, at: int, attribute: str) -> str | None:
    start = _skip(words, at, _ARTICLES | NOW_WORDS)
    end = _name_end(words, start)
    return attribute if end > start and _ends(words, end) else None


def read_company(words: Words, at: int, attribute: str) -> str | None:
    """Read the name of a company: not a place or a person, as people work for these, too."""
    start = _skip(words, at, _ARTICLES | NOW_WORDS)
    if start >= len(words.folded) or words.folded[start] in _NO_COMPANY:
        return None
    return read_name(words, at, attribute)


def read_known_company(words: Words, at: int, attribute: str) -> str | None:
    """Read the name of a company that is known, or that has a legal form: `Weber GmbH`."""
    start = _skip(words, at, _ARTICLES | NOW_WORDS)
    end = _name_end(words, start)
    is_known = end > start and (words.folded[start] in COMPANIES or words.folded[end - 1] in COMPANY_FORMS)
    return read_name(words, at, attribute) if is_known else None


def is_person(name: Sequence[str]) -> bool:
    """True if words, folded, are the name of a person: a first name, or a title with a further name."""
    return bool(name) and (name[0] in FIRST_NAMES or (name[0] in _TITLES and len(name) > 1))


def read_person(words: Words, at: int, attribute: str) -> str | None:
    """Read the name of a person; one with a title is another attribute: `Frau Klein` may be called `Anna`."""
    start = _skip(words, at, _ARTICLES | NOW_WORDS)
    end = _name_end(words, start)
    if not (is_person(words.folded[start:end]) and _ends(words, end)):
        return None
    return f"{attribute} with title" if words.folded[start] in _TITLES else attribute


def read_place(words: Words, at: int, attribute: str) -> str | None:
    """Read the name of a known city or country, which are two attributes.

    Another place may be a part of a city, or a region with the city in it.
    """
    at = _skip(words, at, NOW_WORDS)
    end = _city_end(words, at)
    if end == at and words.folded[at : at + 1] and words.folded[at] in COUNTRIES:
        end, attribute = _name_end(words, at), f"{attribute} country"
    return attribute if end > at and _ends(words, end) else None


def read_city(words: Words, at: int, attribute: str) -> str | None:
    return read_place(words, at, attribute) if _city_end(words, at) > at else None


def _city_end(words: Words, at: int) -> int:
    """Return the index behind the name of a known city; `at` without one, or before a further name: `London Road`."""
    end = _name_end(words, at)
    name = words.folded[at:end]
    return end if " ".join(name) in TWO_WORD_CITIES or (len(name) == 1 and name[0] in CITIES) else at


def read_new_home(words: Words, at: int, attribute: str) -> str | None:
    """Read a known city before the verb, as in `nach Bonn gezogen`."""
    end = _city_end(words, at)
    is_moved = end > at and words.folded[end : end + 1] in (["gezogen"], ["umgezogen"])
    return attribute if is_moved else None


def read_product(words: Words, at: int, attribute: str) -> str | None:
    """Read the name of a product or an address; a platform does not count, since a thing runs on several."""
    at = _skip(words, at, _ARTICLES | NOW_WORDS)
    if at >= len(words.folded) or words.folded[at] in _PLATFORMS | _NO_NAME:
        return None
    if words.folded[at] in _PRODUCTS:
        end = at + 1
        while end < len(words.folded) and (_is_capitalised(words, end) or words.folded[end] in _PRODUCTS | {"actions"}):
            end += 1
    else:
        end = _name_end(words, at)
    if end == at and "." in words.folded[at]:
        end = at + 1
    if end == at or not _ends(words, end):
        return None
    layer = _LAYERS.get(words.folded[at])
    return f"{attribute} {layer}" if layer else attribute


def read_known_product(words: Words, at: int, attribute: str) -> str | None:
    """Read a known product: in German all nouns are capitalised."""
    at = _skip(words, at, _ARTICLES | NOW_WORDS)
    is_known = at < len(words.folded) and (words.folded[at] in _PRODUCTS or "." in words.folded[at])
    return read_product(words, at, attribute) if is_known else None


def read_known_value(words: Words, at: int, attribute: str) -> str | None:
    """Read a number, an identifier or a date, or the name of a known product, city or person."""
    first = words.folded[at : at + 1]
    is_name = bool(first) and (first[0] in FIRST_NAMES or _city_end(words, at) > at)
    following = words.folded[at : at + LOOKAHEAD_WORDS]
    is_known = is_name or any(_EXACT.search(word) or word in _DAYS | _MONTHS for word in following)
    return attribute if is_known or read_known_product(words, at, attribute) else None


def read_when(words: Words, at: int, attribute: str) -> str | None:
    """Read a day or a time; these are two attributes."""
    at = _skip(words, at, _ARTICLES | NOW_WORDS)
    rest = words.folded[at:]
    if not rest:
        return None
    if _has_further_time(rest):
        return None
    if rest[0] in _DAYS:
        return f"{attribute} day"
    if any(word in _MONTHS for word in rest[:3]) and any(word[0].isdigit() for word in rest[:2]):
        return f"{attribute} day"
    is_clock = rest[1:2] == [":"] or _UNITS_OF_TIME & {*rest[1:2]} or not rest[0].isdigit()
    return f"{attribute} time" if _CLOCK.search(rest[0]) and is_clock else None


def _has_further_time(words: Sequence[str]) -> bool:
    """True if another day or time follows the first word, unless it is denied: `Tuesday, not Monday`."""
    days = [at for at, word in enumerate(words) if at and word in _DAYS]
    if any(words[at - 1] not in _DENIALS for at in days):
        return True
    joined = [words[at + 1 : at + 3] for at, word in enumerate(words) if word in _CONJUNCTIONS]
    return any(_DIGIT.search(word) for following in joined for word in following)


def read_colour(words: Words, at: int, attribute: str) -> str | None:
    at = _skip(words, at, _ARTICLES | NOW_WORDS)
    is_colour = at < len(words.folded) and words.folded[at] in _COLOURS
    return attribute if is_colour and _ends_closely(words, at + 1) else None


_CUISINES = _words(
    "italian french japanese chinese thai indian mexican greek turkish spanish korean vegan vegetarian italienisch "
    "franzosisch japanisch chinesisch thailandisch indisch mexikanisch griechisch turkisch spanisch vegetarisch "
    "italiano italiana frances francesa japones japonesa chino china mexicano mexicana indiano indiana giapponese "
    "cinese messicano messicana italien italienne francais francaise japonais japonaise chinois chinoise indien "
    "indienne"
)
_DISHES = ("food", "dish", "essen", "gericht", "comida", "plat", "cibo", "piatto")
"""Attributes of which a cuisine is a class: ramen is Japanese."""

MAX_THING_WORDS = 3


def read_thing(words: Words, at: int, attribute: str) -> str | None:
    """Read a thing of up to `MAX_THING_WORDS` words, also in lower case: a food, a drink, a sport."""
    at = _skip(words, at, _ARTICLES | NOW_WORDS)
    end = at
    for word in words.folded[at : at + MAX_THING_WORDS]:
        if word in _NO_THING | _CONJUNCTIONS | NOW_WORDS or not word[0].isalnum() or word == "these":
            break
        end += 1
    if end - at == 1 and words.folded[at] in _CUISINES and attribute.endswith(_DISHES):
        return None
    if end - at == 1 and _STATE.search(words.written[at]) and not attribute.endswith("sport"):
        return None
    return attribute if end > at and _ends_closely(words, end) else None


def _ends_closely(words: Words, at: int) -> bool:
    """True if only words of now follow: other words after a word in lower case may be part of the value."""
    rest = " ".join(words.folded[_skip(words, at, NOW_WORDS) :])
    return not rest or rest == "!" or rest in _PHRASES_OF_NOW


ValueReader = Callable[[Words, int, str], str | None]
"""From words, the index of the value, and the attribute, to a more exact attribute."""

VALUE_READERS: Mapping[str, ValueReader] = {
    "name": read_name,
    "company": read_company,
    "person": read_person,
    "place": read_place,
    "city": read_city,
    "new home": read_new_home,
    "product": read_product,
    "when": read_when,
    "colour": read_colour,
    "thing": read_thing,
}

READERS_AMONG_NOUNS: Mapping[str, ValueReader] = {
    **VALUE_READERS,
    "company": read_known_company,
    "product": read_known_product,
    "specific": read_known_value,
}
"""The same where any capitalised noun may follow: after German verbs, and `at the` in Italian and Portuguese."""
