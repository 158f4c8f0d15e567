"""Phrases that label a sentence, and shared parts of the patterns of several labels. Pure: data.

Phrases are folded by `agents.rules.text.tokenizer.fold` and separated by commas. `{a|b}` is a choice, `^` the beginning
of the sentence, `$` its end, and `*` at the end of a word any ending. They are chosen for precision: a missing phrase
costs less than a wrong one.

Each pattern is searched in `Sentence.spaced` if one of its trigger words is in the sentence. Every repetition is
bounded or of one character class, so matching is linear in the sentence.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple


class LabelPattern(NamedTuple):
    """The pattern of a label, searched in sentences with at least one of its trigger words."""

    label: str
    triggers: frozenset[str]
    pattern: re.Pattern[str]


def label_pattern(label: str, triggers: str, pattern: str) -> LabelPattern:
    """Return a pattern; `triggers` are separated by spaces."""
    return LabelPattern(label, frozenset(triggers.split()), re.compile(pattern))


WORD = r"[^ ,:?!]+"

DAY = (
    r"(?:the |on |at |in |next |this |den |dem |am |el |le |il |a ){0,2}(?:\d|monday|tuesday|wednesday|thursday|"
    r"friday|saturday|sunday|today|tomorrow|tonight|noon|midnight|lunch|january|february|march|april|may |june|july|"
    r"august|september|october|november|december|christmas|easter|week|weekend|month|montag|dienstag|mittwoch|"
    r"donnerstag|freitag|samstag|sonntag)"
)
"""Beginning of a number, a day or a month."""

TASK_OPENING = re.compile(
    r"^ (?:please |pls |can you |could you |ok |now |then |and |so |, )*(?:explain|translate|summari[sz]e|draft|"
    r"describe|generate|create|rewrite|write (?:a|an|the|me|our|my|down|us|one|two|it)|tell (?:me|us)|show (?:me|us)|"
    r"give (?:me|us)|make (?:a|an|the|me|it|us)|send|order|fix|add|remove|catch|wrap|handle|log|raise|throw|return|"
    r"implement|reply to|build|list|find|check|look|here's|help|set|schreib|erklar|ubersetz|escribe|explica|ecris|"
    r"explique) "
)
"""Opening of a momentary request: things that it mentions are neither rules nor reports."""


CUE_PHRASES: Mapping[str, str] = {
    "RESOLVED": """
        {it|that|this|everything|all} works {now|again}, {it's|that's|everything's} working {now|again},
        now it works, works now, working again, works like a charm, {that|this} fixed it, {is|are|it's|that's|was|
        were} fixed, {is|has been|got|now} {fixed|resolved|solved}, ^fixed$, ^fixed {it|that|now|in}, fixed {it|
        now}, {i|we|i've|we've} fixed, {i|we} {got|have} it working, got it {working|to work}, problem solved,
        that solved it, {it's|is} solved, {did|does} the trick, {all|the} tests pass, tests {pass|are passing} {now|
        again}, all {green|tests pass|tests passed}, back {up|online} again, up and running again, no longer {fails|
        crashes|failing|crashing|times out|happens}, {error|errors} {is|are} gone, no more errors, {geht|
        funktioniert|lauft|klappt} {jetzt|wieder|nun}, {ist|wurde|jetzt} {behoben|repariert|gelost}, ya funciona,
        funciona {ahora|de nuevo|otra vez}, {esta|ya esta|quedo} {arreglado|solucionado|resuelto}, {ca|
        cela} {marche|fonctionne} {maintenant|a nouveau|de nouveau}, {est|c'est} {resolu|repare|corrige}
    """,
    "CHANGE": """
        {i|we|i've|we've|just|has|have|has been|have been|was|were|they|they've} {changed|updated|upgraded|migrated|
        switched|renamed|replaced|removed|installed|refactored|bumped|deployed|merged|reverted|rolled back|
        downgraded|added|enabled|disabled|moved|rewrote|rewritten|patched}, {is|are|it's} now {on|in|at|called|
        running|using}, instead of the old, changed {to|from}, since the {update|upgrade|deploy}, {wurde|wurden|
        habe|haben} {geandert|umgestellt|aktualisiert|ersetzt|entfernt|verschoben}, jetzt {statt|anstatt}, {he|
        hemos|ha|han} {cambiado|actualizado|reemplazado|quitado|anadido|movido|instalado}, {cambie|actualice|
        movimos}, {j'ai|on a|nous avons} {change|modifie|remplace|supprime|ajoute|installe|deplace}, mis a jour
    """,
    "GOAL": """
        {the|my|our|your} {goal|aim|objective|task|mission} {is|was|of}, ^{goal|task|objective}, {i'm|we're|i am|
        we are} {trying to|building|working on|aiming|writing a|planning to|hoping to|to replace}, {i|we} {want|
        need|intend|aim|plan|hope} to {build|make|write|finish|create|implement|replace|launch|ship|learn|get|move|
        migrate|add|start|open|find|save|run|open}, {i'd|we'd} like to {build|make|write|finish|create|implement|
        replace|launch|ship|learn|move|migrate|add|start|open}, the idea is to, {ich|wir} {will|wollen|mochte|
        mochten|versuche|plane|planen}, {mein|unser|das} ziel, ziel ist, {mi|nuestro|el} objetivo, {quiero|
        queremos} {hacer|crear|terminar|aprender|montar|construir}, {mon|notre|le} {but|objectif}, {je|nous} {veux|
        voudrais|voulons} {faire|creer|finir|apprendre|construire}
    """,
    "DONE": """
        ^done, {it's|is|are|all|that's|now|i'm|we're} {done|finished|complete}, {i've|we've|have|has|has been|
        is} {finished|completed|submitted|shipped|merged|deployed|released|delivered|booked|signed|paid|handed in},
        {i|we} {finished|completed|submitted|shipped|merged|deployed|released|delivered|booked|signed|paid|sent},
        went live, ^live, is live, it's {live|merged|deployed|signed|booked}, ^{shipped|merged|deployed|finished|
        sent|booked}, {ist|sind} {fertig|erledigt|abgeschlossen}, ^{erledigt|fertig|gemacht}, {esta|ya esta} {listo|
        hecho|terminado}, ^{listo|hecho}, {he|hemos} terminado, c'est {fait|fini|termine}, {j'ai|on a} {fini|
        termine}, ^{fait|termine}
    """,
    "PENDING": """
        todo, to-do, {still|left} to {do|be done}, {i|we|you} still {need|have} to, still {needs|has} to, {i|we|
        i'll|we'll} {need|have|must|have got} to, {i've|we've} {got|still got} to, not {yet|done|finished|
        merged} yet, hasn't been, haven't {been|done|finished|started|got}, next {step|steps|up|is}, {is|are|
        still} {pending|missing|open}, waiting {for|on}, don't forget, remind me, remember to, blocked {on|by}, {is|
        are} due, deadline, by {monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight}, {ich|
        wir} {muss|mussen} noch, {muss|mussen} noch, noch nicht, fehlt noch, {steht|stehen} noch aus, {falta|faltan|
        todavia falta}, pendiente*, {tengo|tenemos} que, todavia no, {il|reste} {faut|reste} {encore|a},
        pas encore, {je|on|nous} {dois|doit|devons} encore
    """,
    "PRINCIPLE": """
        principle*, rule of thumb, as a rule, {the|a} key {is|idea|point}, {is|are} defined as, {which|that|this|
        it} means, {is|are} called, {is|are} known as, the {rule|point|law|trick|essence} is, definition of,
        by definition, {is|are} {a|the} {kind|type|form|way|set|measure} of, refers to, fundamentally,
        best {practice|practices}, {trade-off|tradeoff}, in general ,, generally speaking, the more, {always|
        never} {costs|means|happens|comes|follows}, {prinzip*|faustregel}, grundsatzlich, {das|es} {bedeutet|
        heisst}, {nennt man|heisst dass}, im allgemeinen, {principio*|regla general}, {significa|quiere decir} que,
        se {llama|define}, en general ,, {principe*|regle generale}, {cela|ca} {signifie|veut dire}, on appelle,
        s'appelle, en general ,
    """,
    "EXAMPLE": """
        for {example|instance}, e.g, ^{example|imagine|suppose|picture}, such as, an example, let's say,
        say you {have|want|are}, like {this|so} :, zum beispiel, z.b, beispielsweise, beispiel, por ejemplo,
        ejemplo*, pongamos, par exemple, exemple*, disons
    """,
    "PATTERN": """
        pattern*, anti-pattern, {template|boilerplate|idiom|recipe|checklist|convention|workflow} {is|for|:},
        {every|each} time {i|we|you}, whenever, the usual {way|order|steps}, step by step, {always|usually} {start|
        starts|begin|goes|follows|works}, in {three|four|two|five} steps, ^{first|second|third} ,, the same {shape|
        structure|way}, jedes mal wenn, schritt fur schritt, muster, siempre que, paso a paso, {patron|patrones},
        chaque fois que, etape par etape, {modele|schema}
    """,
    "INSIGHT": """
        {i|we|i've|we've} {realized|realised|noticed|discovered|learned|learnt|figured out|found out|understood|
        worked out}, {i|we} found that, {it|that} turns out, turns out, turned out, it dawned on, so that's why,
        that explains, root cause, the {real|actual|underlying} {problem|reason|cause|issue}, the {insight|lesson|
        takeaway|culprit}, what i learned, lesson learned, aha, what surprised, {makes|made} me {see|realise|
        realize}, {mir|uns} ist {klar|aufgefallen}, {ich|wir} {habe|haben} {gemerkt|gelernt|verstanden|
        festgestellt}, stellt sich heraus, {me|nos} {di|dimos} cuenta, {descubri|aprendi|resulta} que, {he|
        hemos} {descubierto|aprendido|notado}, je me suis rendu compte, {j'ai|on a} {compris|appris|remarque|
        decouvert}, il s'avere
    """,
    "OPEN_QUESTION": """
        {i|we|i'm|we're|still|just} {wonder|wondering}, {not|isn't|aren't|wasn't} {sure|clear|certain|decided|
        known} {if|whether|how|what|which|who|when|where|why|yet|about|i|we}, open question*, undecided,
        still {unclear|undecided|open}, {i|we} {don't|do not} know {yet|whether|if|how|what|which|who|when|where|
        why}, {haven't|hasn't|have not} decided, to be decided, tbd, {figure|find} out {if|whether|how|what|which|
        why}, remains to be seen, {the|my|one|another} question is, no idea {if|whether|how|what|which|who|when|
        where|why}, torn between, can't decide, {ich|wir} {weiss|wissen} {noch nicht|nicht ob|nicht wie}, {ich|
        wir} {frage|fragen} {mich|uns}, noch {offen|unklar|nicht entschieden}, offene frage*, {no|aun no|
        todavia no} {se|sabemos} {si|como|que|cual}, me pregunto, por decidir, {esta|sigue} por ver, je me demande,
        {je|on} ne {sais|sait} pas {si|comment|encore}, reste a voir, question ouverte
    """,
    "PREFERENCE": """
        {i|we|i'd|we'd|i would|would|she|he} prefer*, {i'd|we'd|i would} rather, {my|our} {favourite|favorite|
        preference}, {i|we} {don't|do not} {like|want|need|drink|eat|use|do}, {i|we} {hate|dislike|avoid|
        can't stand|never drink|never eat|never use}, {i|we} like {my|our|it|short|things|to have|to be|to keep|
        when}, ^please {always|never|keep|use|answer|reply|write|be|don't|do not|stop|call|give|make}, {from|
        as of} now on, in {future|the future} ,, {i|we} want you to, {i|we} {always|usually} {use|drink|take|eat|
        write|work|want|order|prefer}, keep {it|answers|your answers} {short|brief|concise|simple}, {no|
        without} {emojis|bullet points|exclamation marks}, {ich|wir} {bevorzuge|bevorzugen|mag keine|mag kein|
        mag lieber|hasse}, {mir|uns} {ware lieber|ist lieber|gefallt}, {am liebsten|lieblings*}, ab {jetzt|sofort},
        bitte {immer|nie|nicht|nur|kurz|keine}, prefiero, preferimos, {mi|nuestro} {favorito|favorita|preferido|
        preferida}, {no me|odio} {gusta|gustan}, de ahora en adelante, {je|nous} {prefere|preferons|deteste}, {mon|
        ma} {prefere|preferee|favori}, {je n'aime|n'aime} pas, dorenavant, desormais
    """,
    "LIKING": """
        {i|we|she|he|they} {love|loves|like|likes|enjoy|enjoys|adore|adores|loved|liked|enjoyed}, {i'm|he's|she's|
        am|is} {fond of|a fan of|into|obsessed with|keen on}, {ich|wir|sie|er} {mag|mogen|liebe|lieben|liebt}, {me|
        le|nos} {gusta|gustan|encanta|encantan}, {j'aime|j'adore|il aime|elle aime|on adore}
    """,
    "SPECULATION": """
        ^what {if|about}, ^how about, ^{maybe|perhaps|alternatively}, {maybe|perhaps} {we|i|you|it|a|the|they|one},
        {we|i|you|one} {could|might}, {one|another} {option|idea|possibility}, an {option|idea}, could be,
        might be, brainstorm*, {i'm|i am|we're|been|just} {thinking|toying|musing|pondering|dreaming}, {suppose|
        assuming} {we|i}, in theory, hypothetically, {vielleicht|eventuell} {sollten|konnten|kann|konnte|ware},
        ^vielleicht, {wir|man|ich} {konnten|konnte}, was ware wenn, ^{quizas|quiza|tal vez}, {y si|podriamos|
        podria}, ^peut-etre, {et si|on pourrait|je pourrais|pourrait etre}
    """,
    "REASON": """
        because, because of, that's why, the reason, due to, so that, which is why, {weil|deshalb|deswegen|wegen|
        daher|damit}, {porque|por eso|debido a}, {parce que|c'est pourquoi|a cause de}
    """,
    "FIRST_PERSON": """
        i, i'm, i've, i'd, i'll, me, my, mine, myself, we, we're, we've, we'd, we'll, us, our, ours, ich, mich,
        mir, mein, meine, meinen, meinem, meiner, wir, uns, unser, unsere, unseren, yo, mi, mis, conmigo, nosotros,
        nuestro, nuestra, je, j'ai, moi, mon, ma, mes, nous, notre, nos
    """,
}
"""By label, in English, German, Spanish and French."""

OPENING_FILLERS = """
    and but so ok okay also then now oh ah hm yes yeah right please sorry hey hi look listen wait
    und aber also ach ja gut bitte moment y pero bueno si pues et mais bon alors oui , : !
"""
"""Filler words to skip at the beginning of a sentence."""
