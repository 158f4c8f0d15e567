"""Extract the claim of an item, and resolve conflicting claims: last said wins, in any order of arrival. Pure.

Enters: a sentence and its speaker. Leaves: a claim, or None. Guaranteed: claims in the first person are per speaker;
statements that can be true together have no claim. A wrong claim hides something true, so the subject needs a noun with
one value at a time and a word that tells it from others of its kind, and the value must be a name, a number or a date:
`The deploy target is unclear` supersedes nothing.
"""

import hashlib
import json
import re
from collections.abc import Mapping

from agents.rules.items.facts import NOUN_PATTERN, OPENING_PATTERN, has_specific_value
from agents.rules.text.sentences import parse_sentence, written_words
from schemas.state.memories import Claim, ClaimEntry, Memory

_SLOT = (
    r"(?:target|port|deadline|budget|name|password|passphrase|address|email|e-mail|number|date|birthday|database|host|"
    r"hostname|region|provider|version|owner|limit|timeout|price|rent|fee|salary|capital|timezone|colou?r|size|title|"
    r"url|domain|branch|bucket|id|code|pin|interval|threshold|quota|currency|framework|"
    r"ziel|frist|passwort|adresse|nummer|datum|geburtstag|datenbank|preis|miete|grenze|"
    r"destino|puerto|plazo|presupuesto|nombre|contrasena|direccion|numero|fecha|cumpleanos|precio|alquiler|"
    r"cible|delai|nom|anniversaire|prix|loyer|limite)"
)
"""Nouns with one value at a time."""

_PERSONAL = (
    r"(?:name|birthday|age|address|email|e-mail|phone number|favou?rite (?:colou?r|number|food|band|film|movie|book)|"
    r"geburtstag|adresse|lieblingsfarbe|cumpleanos|direccion|nombre|anniversaire|nom)"
)
"""Attributes of a person with one value at a time."""

_THE = r"(?:the|our|der|die|das|unser|unsere|el|la|nuestro|nuestra|le|notre)"
_NEW = re.compile(r"\b(?:new|current|actual|latest|neue|neuer|neues|nuevo|nueva|nouveau|nouvelle) ")
_IS = r"(?:is|are|will be|ist|sind|es|est|sera|wird)"
_THEN = r"(?:now |jetzt |nun |ahora |maintenant |called |on |at |in |the |am |el |le )*"
_COMPOUND = r"[^ ,:?!]{3,}(?:ziel|frist|passwort|adresse|nummer|datum|datenbank|preis|grenze)"
_SUBJECT = rf"(?P<subject>(?:(?:{NOUN_PATTERN}){{1,4}}?{_SLOT}|{_COMPOUND})(?: of (?:the )?[^ ,:?!]+)?)"
_SUBJECT_OF = rf"(?P<subject>{_SLOT} (?:of|for) (?:the |our )?(?:{NOUN_PATTERN}){{1,3}}?)"
_NOT_BUT = r"(?:isn't|is not|ist nicht|no es|n'est pas) (?:[^ ,]+ ){1,4}(?:, )?(?:but|sondern|sino|mais) "
_MY = r"(?:my|mein|meine|mi|mon|ma)"
_LIVE = (
    r"(?:i|we) (?:now |still )?live in|(?:ich|wir) (?:wohne|wohnen) (?:jetzt )?in|(?:vivo|vivimos) (?:ahora )?en|"
    r"(?:j'habite|nous habitons) (?:maintenant )?a"
)
"""Without `moved to`: people also move to another tool."""

_CLAIMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"{OPENING_PATTERN}{_THE} {_SUBJECT} (?:{_IS} (?!not ){_THEN}|{_NOT_BUT})"), "{subject}|is"),
    (re.compile(rf"{OPENING_PATTERN}{_THE} {_SUBJECT_OF}(?:{_IS} (?!not ){_THEN}|{_NOT_BUT})"), "{subject}|is"),
    (
        re.compile(
            rf"{OPENING_PATTERN}(?:we|i|they)(?:'ve| have)? (?:just |now )?(?:moved|changed|switched|set|raised|"
            rf"lowered) {_THE} {_SUBJECT} (?:from (?:[^ ]+ ){{1,4}}?)?(?:to|onto) "
        ),
        "{subject}|is",
    ),
    (re.compile(rf"{OPENING_PATTERN}{_MY} (?P<subject>{_PERSONAL}) {_IS} (?!not ){_THEN}"), "{own}|{subject}"),
    (re.compile(rf"{OPENING_PATTERN}{_MY} {_SUBJECT} {_IS} (?!not ){_THEN}"), "{own}|{subject}"),
    (re.compile(rf"{OPENING_PATTERN}(?:{_LIVE}) (?!\d)"), "{own}|lives in"),
)
"""Patterns up to the value, and the claims that they make."""

_DECIDED = re.compile(
    r"^ (?:[^ ]+ ){0,3}?(?:we|i)(?:'ve| have)? (?:just )?decided to (?:use|go with|take) (?:[^ ,:]+ ){1,4}?for "
    rf"(?:the |our )(?P<subject>(?:{NOUN_PATTERN}){{1,4}}?)(?:instead |, not |, and not |$|now $)"
)


def extract_claim(text: str, speaker: str) -> str | None:
    """Return the claim of a sentence; `speaker` is the folded name behind its first person."""
    spaced = parse_sentence(text).spaced
    if match := _DECIDED.search(spaced):
        return f"{match['subject'].strip()}|uses"
    for pattern, claim in _CLAIMS:
        match = pattern.search(spaced)
        if match and has_specific_value(written_words(text), spaced.count(" ", 0, match.end()) - 1):
            subject = match.groupdict().get("subject") or ""
            return claim.format(subject=_NEW.sub("", subject).strip(), own=f"speaker:{speaker}")
    return None


MAX_CLAIM_VALUES = 100
"""Latest entries per claim: older ones were superseded and stay so."""

ClaimsByKey = dict[str, ClaimEntry]
"""The claims of an item by key, each with its latest time."""


def claims_of(item: Memory | None) -> ClaimsByKey:
    """Return the claims of an item, the latest first, each with its latest support.

    An item that a consolidation merged into another one has none: the other one has them. Nor has one that no search
    finds: it supersedes nothing that is found.
    """
    if item is None or item.item is None or item.superseded_in is not None or not item.visibility.searchable:
        return {}
    claims: ClaimsByKey = {}
    for support in reversed(item.item.supports):
        if support.claim is not None:
            entry = ClaimEntry(support.occurred_at, support.source, item.memory_id)
            claims.setdefault(_key(item, support.claim), entry)
    return claims


def update_claim(claim: Claim, memory_id: str, entry: ClaimEntry | None = None) -> Claim:
    """Replace the entry of an item; without `entry`, remove it."""
    others = [one for one in claim.held if one.memory_id != memory_id]
    return Claim(held=tuple(sorted([*others, *([entry] if entry else [])])[-MAX_CLAIM_VALUES:]))


def preceding_item_ids(claim: Claim, memory_id: str) -> list[str]:
    """Return the items with a successor that may change when this item is added, removed or said again."""
    indexes = [index for index, one in enumerate(claim.held) if one.memory_id == memory_id]
    return [claim.held[index - 1].memory_id for index in indexes if index > 0]


def successor(item: Memory, claims: Mapping[str, Claim]) -> ClaimEntry | None:
    """Return the entry that superseded an item, None while the item is current.

    An item is superseded if each of its claims has a later entry of another item. The successor is the next entry, so
    that the chain tells what held when. An item with a support without a claim is current.
    """
    entries = claims_of(item)
    supports = item.item.supports if item.item else ()
    if not entries or any(one.claim is None for one in supports):
        return None
    later = [_next_entry(claims[key], entry) for key, entry in entries.items()]
    return later[0] if all(later) else None


def apply_successor(item: Memory, after: ClaimEntry | None) -> Memory:
    """Return the item superseded by `after`, or current without it; the decision of a consolidation stays."""
    if item.item is None or item.superseded_in is not None:
        return item
    until = after.occurred_at if after else None
    updated = item.item.model_copy(update={"valid_until": until})
    return item.model_copy(update={"superseded_by": after.memory_id if after else None, "item": updated})


def _next_entry(claim: Claim, entry: ClaimEntry) -> ClaimEntry | None:
    return next((one for one in claim.held if one > entry and one.memory_id != entry.memory_id), None)


def _key(item: Memory, claim: str) -> str:
    identity = json.dumps([sorted(item.scope.items()), item.mode, claim], separators=(",", ":"))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
