"""Names of dates in English, German, Spanish and French, folded by `agents.rules.text.tokenizer.fold`. Pure: data."""

from collections.abc import Mapping


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, row in enumerate(names.split("|"), first) for name in row.split()}


MONTHS: Mapping[str, int] = _numbered(
    "january jan januar janner enero ene janvier janv|february feb februar febrero fevrier fevr"
    "|march mar marz maerz marzo mars|april apr abril abr avril avr|may mai mayo|june jun juni junio juin"
    "|july jul juli julio juillet juil|august aug agosto ago aout|september sep sept septiembre setiembre septembre"
    "|october oct oktober okt octubre octobre|november nov noviembre novembre"
    "|december dec dezember dez diciembre dic decembre",
    1,
)
"""Months by name and common abbreviation."""

WEEKDAYS: Mapping[str, int] = _numbered(
    "monday montag lunes lundi|tuesday dienstag martes mardi|wednesday mittwoch miercoles mercredi"
    "|thursday donnerstag jueves jeudi|friday freitag viernes vendredi|saturday samstag sonnabend sabado samedi"
    "|sunday sonntag domingo dimanche",
    0,
)
"""Weekdays by name; Monday is 0. Without abbreviations: `sun` and `mar` are words."""

NUMBER_WORDS: Mapping[str, int] = _numbered(
    "a an one ein eine einem einer un una uno une|two zwei dos deux|three drei tres trois|four vier cuatro quatre"
    "|five funf cinco cinq|six sechs seis|seven sieben siete sept|eight acht ocho huit|nine neun nueve neuf"
    "|ten zehn diez dix|eleven elf once onze|twelve zwolf doce douze",
    1,
)
"""Numbers up to twelve by word."""

DAY_WORDS: Mapping[str, int] = {
    "day before yesterday": -2,
    "vorgestern": -2,
    "anteayer": -2,
    "antes de ayer": -2,
    "avant-hier": -2,
    "yesterday": -1,
    "gestern": -1,
    "ayer": -1,
    "anoche": -1,
    "hier": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "heute": 0,
    "hoy": 0,
    "esta noche": 0,
    "aujourd'hui": 0,
    "ce soir": 0,
    "tomorrow": 1,
    "morgen": 1,
    "manana": 1,
    "demain": 1,
    "day after tomorrow": 2,
    "ubermorgen": 2,
    "uebermorgen": 2,
    "pasado manana": 2,
    "apres-demain": 2,
}
"""Distance from today in days. `agents.rules.text.dates` excludes the other meanings of `morgen`, `manana`, `hier`."""

DAYS_PER_UNIT: Mapping[str, int] = {
    **dict.fromkeys(("day", "days", "tag", "tage", "tagen", "dia", "dias", "jour", "jours"), 1),
    **dict.fromkeys(("week", "weeks", "woche", "wochen", "semana", "semanas", "semaine", "semaines"), 7),
}
"""Days per unit. Months and years are left out: their length varies."""

WEEK_PHRASES: Mapping[str, int] = {
    "last week": -1,
    "letzte woche": -1,
    "vorige woche": -1,
    "vergangene woche": -1,
    "la semana pasada": -1,
    "la semaine derniere": -1,
    "this week": 0,
    "diese woche": 0,
    "esta semana": 0,
    "cette semaine": 0,
    "next week": 1,
    "nachste woche": 1,
    "naechste woche": 1,
    "kommende woche": 1,
    "la proxima semana": 1,
    "la semana que viene": 1,
    "la semaine prochaine": 1,
}
"""Distance from this week in weeks."""

LAST_WORDS = frozenset(
    {"last", "letzten", "letzter", "letztem", "vorigen", "vergangenen", "pasado", "ultimo", "dernier", "passe"}
)
"""Words beside a weekday in the past."""

NEXT_WORDS = frozenset(
    {"next", "nachsten", "naechsten", "nachster", "kommenden", "kommender", "proximo", "viene", "prochain"}
)
"""Words beside a weekday in the future."""

AMBIGUOUS_MONTHS = frozenset({"may", "mar", "march", "set", "ago", "abr", "out"})
"""Months that are also other words: they count only with a year, an ordinal or an `of`."""
