"""Patterns of corrections of what was said before. Pure: data.

A mere "no" is an answer, and "it's not the cold, it's the wind" is a figure of speech: neither corrects.
"""

import re
from functools import partial

from agents.rules.cues.label_patterns import DAY, WORD, LabelPattern, label_pattern

_correction = partial(label_pattern, "CORRECTION")

_FEW = r"(?:[^,:?! ]+ ){0,6}"
"""Up to six words of a clause."""

_TAKEN_BACK = (
    r"(?:(?:wrong|not right|not correct|incorrect|not true|not it)(?= $| [,:!]| my| the | it | i | she | he | about)|"
    r"not what i (?:meant|said|asked|wanted|wrote))"
)
_NUMBER = r"[^ ]*\d[^ ]* (?:, \d[^ ]* )?"
_NOT_CONTRAST = (
    r"(?!(?:yet|bad|really|much|now|today|sure|me|only|at|so|too|that|a|an|even|exactly|always|quite|one|again|this|"
    r"everyone|everything|to|in|if|necessarily|until|till|long|far|surprisingly|anymore|for|on|with|because|just|all|"
    r"my|i|yes|no|nearly|less|more|than|here|there|very|any|every|many) )"
)
_SUBJECT = (
    r"(?:(?:my|her|his|its|the|their|our) )?(?:[^ ,]+ )?(?:name|surname|address|birthday|number|date|deadline|price|"
    r"port|version|meeting|appointment|flight|email|budget|username|branch|colour|color|train|title)"
)

CORRECTION_PATTERNS: tuple[LabelPattern, ...] = (
    _correction(
        "no",
        r"^ no , (?:use (?!your)|make it|keep (?:it|the)|put|go with|take (?:the|it)|call it|write|change|set|name it|"
        rf"i meant|i said (?!nothing|no|yes)|i mean|i asked (?:for|you)|that's {_TAKEN_BACK}|that is {_TAKEN_BACK}|"
        r"rather |wait )|^ no , not (?!(?:yet|really|at|now|today|that|even|much|so|me|necessarily|exactly|quite|a|"
        rf"any|for|in|on|too|to|anymore|always|ever|only|just|this|until) )(?:{WORD} ){{1,3}}(?:, |$)|"
        rf"^ no , {_FEW}(?:, not |instead (?!of )|rather than |instead of )|^ no , (?:the|my|her|his|their|"
        r"our) (?:(?:other|first|second|third|last|old|new|left|right|big|small|upper|lower|red|"
        rf"blue) (?:{WORD} ){{0,2}}|{WORD} one )$|^ no , {WORD} with (?:an? )?[^ ]{{1,2}} $",
    ),
    _correction(
        "actually",
        r"^ actually (?:, )?(?:no , |no wait|no make|scratch|make (?:it|that)|use |not |let's (?:use|not|do|go|make|"
        r"change)|i meant|change (?:it|that|the)|(?:it's|it is|that's) (?:[^ ,]+ ){0,3}[^ ]*\d[^ ]* (?:$|, (?:not|i))|"
        rf"{_FEW}(?:, not |instead of |rather than ))",
    ),
    _correction(
        "meant mean misspoke mistake mistaken wrong incorrect scratch strike correction true right correct what "
        "misunderstood misheard misread backwards typo mixed",
        r"^ (?:correction [:,]|(?:scratch|strike) that (?:$|[,:!])|i misspoke|my mistake [,:]|i was (?:wrong (?!to |"
        rf"for )|mistaken)|that's {_TAKEN_BACK}|that is {_TAKEN_BACK}|that was wrong|you're (?:wrong|mistaken) (?:$|"
        rf"about|, (?:the|it|my|she|he) )|you(?:'ve)? (?:got|have) {_FEW}(?:wrong|backwards)|i (?:got|had) (?:it|that|"
        rf"the) {_FEW}wrong|i meant (?!to |it |well|every|that as)|what i meant|wrong [,:]|typo|you (?:misunderstood|"
        r"misheard|misread))|^ (?:[^ ]+ , )?typo [,:]|^ (?:oops|sorry|whoops|ah|ups) ,? ?wrong (?:file|link|number|"
        r"date|day|name|window|chat) |^ wrong (?:file|link|date|name|chat) , (?:use|it's|i meant|here)|"
        r" i (?:made a mistake (?:earlier|before|above|there|, )|misread |mistyped |misspelled |mixed (?:that|this|"
        r"it) up)| i meant [^,]{1,30}, not | (?:had|has|have) the (?:year|date|name|number|day|time|address) wrong ",
    ),
    _correction("not", rf"^ (?:it's|it is|it was|that's|that was|the|my|his|her|our|they're) {_FEW}, not {DAY}"),
    _correction(
        "not",
        rf"^ (?:{WORD} ){{1,4}}, not (?:the )?{_NUMBER}$|^ (?:yes , |no , )?{_NUMBER}(?:rather than|"
        rf"instead of) {_NUMBER}",
    ),
    _correction(
        "not",
        rf"^ (?:wait , |sorry , )?not {_NOT_CONTRAST}(?:{WORD} ){{1,2}}, (?!(?:thanks|no|but|sorry|actually|though|"
        r"honestly|please|yet|i|and|is|that|it|so|he|she|we|they|you|if|when|only|whatever|never|not|"
        rf"nor) )(?:{WORD} ){{1,2}}$|^ not the {WORD} {WORD} , the {WORD} (?:one |{WORD} )$| not (?:what|as|"
        r"the one) i (?:said|wrote|told) (?!no|yes)| as i said (?:before|earlier|wrongly) $|"
        rf", not the {WORD} as i said ",
    ),
    _correction(
        "said wrote told",
        rf"^ (?:sorry , )?i (?:said|wrote|told you) (?:{WORD} ){{1,5}}(?:but |, but )?(?:(?:it's|it is|"
        rf"that's) (?:{DAY}|[^ ]*\d|the |a |my )|actually |i meant |i mean |it should )",
    ),
    _correction(
        "isn't wasn't not it's",
        rf"^ (?:sorry , )?{_SUBJECT} (?:isn't|wasn't|is not|was not) [^,]{{1,40}} , (?:it's|it was|but|"
        rf"it is) (?:{WORD} ){{1,3}}$|^ it isn't (?:my|the|her|his) {WORD} who [^,]{{1,40}} , it's ",
    ),
    _correction(
        "forget ignore disregard changed change plan plans",
        r"^ (?:please )?(?:forget|ignore|disregard) (?:what i (?:said|told|wrote)|my (?:last|previous|earlier) )|"
        r" i(?:'ve| have)? changed my mind |^ change of plans? (?:$|[,:!])",
    ),
    _correction(
        "wait hang hold", r"^ (?:no ,? )?(?:wait|hang on|hold on) , (?:no|it's not|i'm exaggerating|i meant|scratch)"
    ),
    _correction(
        "nein nee meinte stimmt falsch korrektur geirrt vertan verschrieben doch sondern",
        r"^ (?:nein|nee) ,? ?(?:nimm|nehmen|das (?:ist|war) falsch|ich meinte|benutz|verwende|doch nicht|sondern|"
        r"(?:der|die|das) [^,]{1,30} ist (?:am|um|im|bei|erst))| ich meinte (?!es )| das stimmt nicht |^ (?:falsch|"
        r"korrektur) [,:]| (?:habe ich|ich habe|hab) mich (?:geirrt|vertan|verschrieben) |^ nicht [^,]{1,30}, sondern ",
    ),
    _correction(
        "no equivoque correccion decir incorrecto referia perdon",
        r"^ no ,? ?(?:usa |uses |quise decir |queria decir |digo |pon |me referia )| quise decir | queria decir que |"
        r" me equivoque (?:al|de|con|en|, )|^ (?:perdon , )?(?:correccion|quise) [,:d]| eso (?:no es|es in)correcto |"
        r" al final no fue (?:el|la) ",
    ),
    _correction(
        "non voulais trompe trompee correction faux fait pas",
        r"^ non ,? ?(?:utilise|prends|mets|je voulais dire) |^ non , pas [^,]{1,25} , | je voulais dire |"
        r" je me suis trompee? (?:de|dans|, )|^ (?:correction|c'est faux) [,:]|^ en fait (?:non|c'est (?:le|la) )|"
        r"^ non , (?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)[ ,]",
    ),
    _correction(
        "dire intendevo sbagliato sbagliata dizer errei",
        r" (?:volevo|quis|queria) (?:dire|dizer) | (?:intendevo|mi sono sbagliat[oa]) | la dico giusta | enganei-me ",
    ),
)

NO_CORRECTION_CONTEXT = re.compile(r" what worries | no (?:problem|worries|idea|wonder|thanks) | wrong to | somehow ")
"""Context of idioms."""
