"""Find procedures: sentences that say how something is done, and numbered lists of steps. Pure.

Guaranteed: a step begins with an imperative verb; a list of things or of questions is no procedure.
"""

import re

from agents.rules.text.chunking import MAX_CHUNK_CHARS, Span, statement_lines

_VERB = (
    r"(?:run|rerun|use|call|type|press|click|tap|open|close|set|unset|add|install|uninstall|execute|go|start|stop|"
    r"restart|copy|paste|delete|remove|push|pull|build|rebuild|create|edit|enter|select|choose|pick|log|turn|hold|put|"
    r"mix|boil|heat|preheat|soak|drain|write|send|ask|export|import|make|take|check|rename|move|merge|commit|deploy|"
    r"bump|tag|drop|apply|update|upgrade|download|upload|unplug|plug|wait|fill|pour|stir|bake|cut|fold|rinse|shake|"
    r"clone|checkout|switch|enable|disable|read|test|verify|save|sign|print|book|fetch|clear|replace|pass|wrap|let)"
)

_VERB_ES = r"(?:ejecuta|ejecute|usa|use|pulsa|pulse|abre|abra|escribe|haz|haga|ve|instala|llama|corre|lanza|pon|anade)"
_VERB_FR = (
    r"(?:lance|lancez|execute|executez|utilise|utilisez|appuie|appuyez|ouvre|ouvrez|tape|tapez|fais|faites|installe|"
    r"installez|clique|cliquez|appelle|appelez|mets|mettez)"
)
_VERB_DE = (
    r"(?:fuhr|fuhre|fuhren|nimm|nehmen|drucke|drucken|offne|offnen|starte|starten|ruf|rufe|rufen|gib|geben|"
    r"installiere|installieren|klicke|klicken|benutze|benutzen|verwende|verwenden|tippe|tippen|muss|musst|musst|mussen)"
)

_SAYS_HOW = re.compile(
    rf"^ (?:and |then |so |also ){{0,2}}(?:in order )?to (?!be |say |put |sum |begin |start |clarify |summarize |me )"
    rf"(?:[^ ,:?!]+ ){{1,8}}[,:] (?:you (?:have to |need to |must |can |should |just |only )*)?"
    rf"(?:first |just |simply |always |please |then ){{0,2}}{_VERB} [^ ]"
    rf"|^ (?:run|execute|type) (?:[^ ,:?!]+ ){{1,6}}to (?:[^ ,:?!]+ ){{1,8}}$"
    rf"|^ first ,? ?{_VERB} (?:[^ ]+ ){{1,40}}?then ,? ?{_VERB} "
    rf"|^ um (?:[^ ,]+ ){{0,6}}zu [^ ,]+ , (?:einfach |zuerst ){{0,2}}{_VERB_DE} "
    rf"|^ para [^ ,]+[aei]r(?:lo|la|se)? (?:[^ ,]+ ){{0,6}}, {_VERB_ES} "
    rf"|^ pour [^ ,]+(?:er|ir|re) (?:[^ ,]+ ){{0,6}}, {_VERB_FR} "
)
_STEP = re.compile(rf"\s*(?P<number>\d{{1,2}})[.)]\s+[`*]*{_VERB}\b[^?]*$", re.IGNORECASE)
MIN_STEPS = 2


def is_procedure(spaced: str) -> bool:
    """True if a sentence, as `Sentence.spaced`, says how something is done."""
    return _SAYS_HOW.search(spaced) is not None


def find_step_lists(text: str) -> list[Span]:
    """Return the numbered lists of steps with their introductory line, without lists longer than a chunk."""
    lines = list(statement_lines(text))
    found: list[Span] = []
    steps = 0
    for index, line in enumerate(lines):
        match = _STEP.match(text[line.start : line.end])
        expected = steps + 1
        if match and int(match["number"]) == expected:
            steps = expected
            continue
        found.extend(_list_span(text, lines, index, steps))
        steps = 1 if match and int(match["number"]) == 1 else 0
    found.extend(_list_span(text, lines, len(lines), steps))
    return found


def _list_span(text: str, lines: list[Span], end: int, steps: int) -> list[Span]:
    """Return the span of the list of `steps` lines before line `end`; nothing if it is too short or too long."""
    if steps < MIN_STEPS:
        return []
    first = end - steps
    if first > 0 and text[lines[first - 1].end - 1] == ":":
        first -= 1
    span = Span(lines[first].start, lines[end - 1].end)
    return [span] if span.end - span.start <= MAX_CHUNK_CHARS else []
