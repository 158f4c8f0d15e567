"""What an item is about, where a later one that says otherwise takes its place. Pure.

Enters: the words of a sentence and who says it. Leaves: a claim, or None. Guaranteed: people who speak of themselves
have claims of their own; things that can be true beside each other have none. A wrong claim hides something true, so a
subject needs a noun that has one value at a time, and a word that tells it from others of its kind.
"""

import re

_SLOT = (
    r"(?:target|port|deadline|budget|name|password|passphrase|address|email|e-mail|number|date|birthday|database|host|"
    r"hostname|region|provider|version|owner|limit|timeout|price|rent|fee|salary|capital|timezone|colou?r|size|title|"
    r"url|domain|branch|bucket|id|code|pin|schedule|interval|threshold|quota|currency|language|framework|editor|"
    r"ziel|frist|passwort|adresse|nummer|datum|geburtstag|datenbank|preis|miete|grenze|"
    r"destino|puerto|plazo|presupuesto|nombre|contrasena|direccion|numero|fecha|cumpleanos|precio|alquiler|"
    r"cible|delai|nom|adresse|anniversaire|prix|loyer|limite)"
)
"""Nouns of which a thing has one at a time."""

_PERSONAL = r"(?:name|birthday|age|address|email|e-mail|phone number|number|favou?rite [^ ]+|geburtstag|cumpleanos)"
_OPENS = r"^ (?:and |also |so |no ,? ?|actually ,? ?|correction [,:] ){0,2}"
_THE = r"(?:the|our|der|die|das|unser|unsere|el|la|nuestro|nuestra|le|notre)"
_NEW = re.compile(r"\b(?:new|current|actual|latest|neue|neuer|neues|nuevo|nueva|nouveau|nouvelle) ")
_IS = r"(?:is|are|will be|ist|es|est|sera)"

_SUBJECT_IS = re.compile(
    rf"{_OPENS}{_THE} (?P<subject>(?:[^ ,:]+ ){{1,4}}?{_SLOT}(?: (?:of|for) [^ ]+)?) {_IS} (?!not )"
)
_MOVED = re.compile(
    rf"{_OPENS}(?:we|i|they)(?:'ve| have)? (?:just |now )?(?:moved|changed|switched|set|raised|lowered) {_THE} "
    rf"(?P<subject>(?:[^ ,:]+ ){{1,4}}?{_SLOT}) (?:from (?:[^ ]+ ){{1,4}}?)?(?:to|onto) "
)
_OWN_IS = re.compile(rf"{_OPENS}(?:my|mein|meine|mi|mon|ma) (?P<subject>{_PERSONAL}) {_IS} (?!not )")
_LIVE = re.compile(rf"{_OPENS}(?:i|we) (?:now |still )?(?:live|moved) (?:in|to) (?!a |an |the |my |our |with )")
_DECIDED = re.compile(
    r"^ (?:[^ ]+ ){0,3}(?:we|i)(?:'ve| have)? (?:just )?decided to (?:use|go with|take) (?:[^ ,:]+ ){1,4}?for "
    r"(?:the |our )(?P<subject>(?:[^ ,:]+ ){1,4}?)(?:instead |, not |, and not |$|now $)"
)


def claim_of(spaced: str, speaker: str) -> str | None:
    """What a sentence, as `Sentence.spaced`, says one thing of; `speaker` is whom its first person means."""
    if match := _SUBJECT_IS.search(spaced) or _MOVED.search(spaced):
        return f"{_NEW.sub('', match['subject']).strip()}|is"
    if match := _OWN_IS.search(spaced):
        return f"speaker:{speaker}|{match['subject']}"
    if _LIVE.search(spaced):
        return f"speaker:{speaker}|lives in"
    if match := _DECIDED.search(spaced):
        return f"{match['subject'].strip()}|uses"
    return None
