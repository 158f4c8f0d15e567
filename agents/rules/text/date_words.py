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

MONTHS_IN_ITALIAN_AND_PORTUGUESE: Mapping[str, int] = _numbered(
    "gennaio janeiro|febbraio fevereiro|marco|aprile|maggio maio|giugno junho|luglio julho||settembre setembro"
    "|ottobre outubro|novembro|dicembre dezembro",
    1,
)
"""Those of questions alone."""

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
    **dict.fromkeys(("day before yesterday", "vorgestern", "anteayer", "antes de ayer", "avant-hier"), -2),
    **dict.fromkeys(("yesterday", "gestern", "ayer", "anoche", "hier", "last night"), -1),
    **dict.fromkeys(("today", "tonight", "this morning", "heute", "hoy", "esta noche", "aujourd'hui", "ce soir"), 0),
    **dict.fromkeys(("tomorrow", "morgen", "manana", "demain"), 1),
    **dict.fromkeys(("day after tomorrow", "ubermorgen", "uebermorgen", "pasado manana", "apres-demain"), 2),
}
"""Distance from today in days. `agents.rules.text.dates` excludes the other meanings of `morgen`, `manana`, `hier`."""

DAYS_PER_UNIT: Mapping[str, int] = {
    **dict.fromkeys(("day", "days", "tag", "tage", "tagen", "dia", "dias", "jour", "jours"), 1),
    **dict.fromkeys(("week", "weeks", "woche", "wochen", "semana", "semanas", "semaine", "semaines"), 7),
}
"""Days per unit. Months and years are left out: their length varies."""

WEEK_PHRASES: Mapping[str, int] = {
    **dict.fromkeys(
        ("last week", "letzte woche", "vorige woche", "vergangene woche", "la semana pasada", "la semaine derniere"), -1
    ),
    **dict.fromkeys(("this week", "diese woche", "esta semana", "cette semaine"), 0),
    **dict.fromkeys(
        (
            "next week",
            "nachste woche",
            "naechste woche",
            "kommende woche",
            "la proxima semana",
            "la semana que viene",
            "la semaine prochaine",
        ),
        1,
    ),
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
