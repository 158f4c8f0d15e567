"""Patterns of constraints. Pure: data.

A constraint obliges or forbids permanently. Not constraints: guesses ("it must be Tuesday"), one-off deadlines ("it
must be there before Saturday"), and obligations of other people.
"""

import re
from functools import partial

from agents.rules.cues.label_phrases import DAY, WORD, LabelPattern, label_pattern

_DO = (
    r"(?:use|touch|delete|remove|drop|commit|push|force-push|deploy|merge|modify|edit|overwrite|rename|add|install|"
    r"email|send|share|store|log|mention|show|include|suggest|write|run|ask|check|test|validate|sanitize|sanitise|"
    r"escape|encrypt|hash|keep|put|buy|order|serve|feed|print|publish|post|paste|expose|hardcode|hard-code|"
    r"trust (?:user|any|the)|skip|disable|restart|connect|open|round|lock|copy|approve|hold|ship|sell|accept|upload|"
    r"block|cross)"
)
"""Verbs of commands with "always" or "never"."""

_HANDS_OFF = (
    r"(?:touch|commit|push|force-push|deploy|merge|modify|edit|overwrite|rename|install|store|log|paste|expose|"
    r"hardcode|hard-code|delete|drop|format|rewrite)"
)
"""Verbs that forbid for good even with "don't", which mostly forbids once."""

_NOT_ONCE = r"(?!(?:[^ ]+ ){0,12}(?:yet|now|today|tonight|tomorrow|there|here|this time|anything|anyone|what i) )"
"""Not limited to this time."""

_PARTICIPLE = (
    r"(?!(?:tired|worried|excited|bored|scared|pleased|exhausted|delighted|thrilled|used|married|retired|mistaken|"
    r"confused|drunk|frozen|rotten|forgotten|stoned|starved|relieved|embarrassed|annoyed|disappointed|ashamed|seen|"
    r"said|believed|done|asked|admitted|finished|fed|amused|interested|related|addressed|children|golden|heaven|men|"
    r"women|often|even|seven|eleven|ten|red) )(?:[^ ]+ed|[^ ]+en|set|kept|sent|paid|put|shut|built|read|told|made|"
    r"sold|held|cut|found|bought|shown|signed|met)"
)
"""A participle after an obligation to `be`; not one of feelings or guesses."""

_STATE = (
    rf"(?:(?:always|never|all|also|only|then|still) )?(?:{_PARTICIPLE} |able to |at least |at most |no (?:more|longer|"
    r"larger|bigger|later|less|fewer) |less than |more than |under |below |over |above |within |between |exactly |"
    r"unique |optional |required |compatible |available |reachable |readable |valid |secure |safe |idempotent |"
    r"deterministic |reversible |offline |online |accessible |responsive |exempt |visible |sterile |kosher |halal |"
    r"vegan |vegetarian |gluten-free |in (?:english|german|french|spanish|utc|writing|sync|place) )"
)
"""Continuations of `must be` in an obligation."""

_PERFECT = r"(?:have (?!(?:a|an|the|at|no|all|two|three|four|our|its|their|exactly|to) )|be being )"
_GUESS = (
    r"(?:say|admit|confess|know|think|feel|seem|look|sound|mean|hate|love|miss|try|see|come|visit|read|watch|meet|"
    r"hear|taste|wonder|remember|laugh|cry|grumble|complain|find|go|talk|get|leave|hurry|eat|have had|do|like|want|"
    r"cost|weigh|live in|last|own|rain|belong|(?:have|add|bring|give|take|make|need) (?:so|such|quite|plenty|lots|a "
    r"lot)) "
)
"""Continuations of `must` in a guess."""
_ADVERB = r"(?:not|never|always|only|also|all|still|really)"
_NOT_DUE = rf"(?!(?:[^ ]+ ){{0,14}}(?:before|by|until|till) {DAY})"
"""Not a deadline of one thing."""

_MUST = (
    rf" (?:must|mustn't)(?! i | we | you )(?: {_ADVERB})* (?!{_ADVERB} |{_PERFECT}|{_GUESS})(?:be (?={_STATE})|(?!be |"
    r"been )[^ ]+ )"
)
_NOT_PERSON = r"(?<! i)(?<! you)(?<! he)(?<! she)(?<! they)(?<! surely)(?<! there)(?<! a)"
_SUBORDINATE = r"^(?!.* (?:why|how|whether|what|who|when|wonder) [^,]{0,60} must )"

_NEVER = (
    rf"(?:(?:^| ,| and| but| please| so| :) (?:never|always|never ever|do not ever|don't ever) (?:ever )?{_DO} |(?:^|"
    rf" ,| and| but| please| so| :) (?:do not|don't|dont) {_HANDS_OFF} (?!(?:it|that|this|me|him|her|them|us|"
    rf"anything) ){_NOT_ONCE})"
)

_constraint = partial(label_pattern, "CONSTRAINT")

_OBLIGATION = (
    _constraint("must mustn't", rf"{_SUBORDINATE}.*{_NOT_PERSON}{_MUST}{_NOT_DUE}"),
    _constraint("must", r" (?:he|she|they) must (?:be able to|not be (?!so |too |very )[^ ]+ed|never be [^ ]+ed) "),
    _constraint("must mustn't", rf" i (?:must (?:not|never)|mustn't) (?!{_GUESS}|jump |be |forget |panic )"),
    _constraint(
        "must mustn't",
        rf"^ you (?:must (?:not|never|always|only|support|use|keep|return|answer|write)|mustn't) (?!{_GUESS}|be |"
        r"forget |worry |blame |jump |panic |give up )",
    ),
    _constraint(
        "has have needs",
        r"(?<! i)(?<! you)(?<! he)(?<! she)(?<! they) (?:has|have|needs) to (?:stay (?:under|below|within|above|"
        r"backwards?|compatible|in sync)|remain |support |fit |comply |run (?:on|offline|without|in|under)|work (?:on|"
        r"with|without|offline|in|even|when)|survive |handle |be able to |be (?:at least|at most|under|below|within|"
        r"compatible|exempt|accessible|idempotent|reversible) |start with )",
    ),
    _constraint(
        "all every each any always",
        r"^ (?:all|every|each|any)(?! (?:child|person|one|body|family|mother|parent|human|time|year|"
        rf"day) ) (?:{WORD} ){{1,5}}(?:(?:has|have) to be {_PARTICIPLE}|needs (?:an?|its|two|at least|to be) |"
        r"requires (?:an?|its|two|at least) |must |shall )",
    ),
    _constraint(
        "has have",
        r" (?:user input|input|passwords?|secrets?|tokens?|credentials|uploads?|card numbers?|personal data|"
        rf"{WORD} data) (?:has|have) to be {_PARTICIPLE}",
    ),
    _constraint("always never do don't dont not", _NEVER),
    _constraint(
        "never",
        r"^ never (?:two|three|four|more than|fewer than|less than|without|under|over|ship|to|from|for) (?!all |my |"
        rf"be |have |return |mind |the )(?={WORD} )|^ (?:use|keep|write|put|send|store|"
        rf"log) (?:{WORD} ){{1,6}}, never |(?: go| goes| belong| belongs) (?:{WORD} ){{1,6}}, never (?:to|in|on|"
        r"into) |, never \" ",
    ),
)
_PROHIBITION = (
    _constraint(
        "nothing nobody no",
        r" (?:nothing|nobody|no one) (?:is|gets|goes|may be|can be) (?:deployed|merged|released|changed|shipped|sent|"
        r"published|touched|moved|deleted|pushed|in |out |live|online|to production)(?:[^ ,]+ ){0,5}? ?(?:until|"
        r"before|without) | no (?:deploys?|deployments?|releases?|changes?|merges?) (?:[^ ]+ ){0,3}(?:until|before|on|"
        r"after|without|during) |^ (?:[^ ,]+ ){0,8}(?:nobody|no one) (?:may|is to|is allowed|gets to|should ever|"
        r"shall|touches|edits|merges|deploys|pushes|approves|commits|parks|else sees) ",
    ),
    _constraint(
        "allowed permitted forbidden forbids prohibited banned off-limits compulsory mandatory obligatory supposed",
        r" (?:is|are|is strictly|are strictly|be) (?:not |never )(?:allowed|permitted|supposed) (?!to be (?:like|this|"
        r"so)|to happen|to know)| (?:isn't|aren't) (?:allowed|permitted|supposed) (?!to be like|to happen|to know)|"
        r" (?<! he)(?<! she) (?:is|are|is strictly|are strictly) (?:forbidden|prohibited|banned|off-limits|compulsory|"
        r"mandatory|obligatory) | has forbidden (?:me|us|him|her|them|it) ",
    ),
    _constraint("under on no", r" (?:under no circumstances|on no account) "),
    _constraint("off", r" (?:is|are) off limits "),
    _constraint(
        "no",
        r"^ (?:and |so )?no (?:new |external |third-party |hard-coded |global |raw |gpl )?(?:dependenc[^ ]+|"
        r"librar[^ ]+|plugins?|packages?|cookies|tracking|ads|globals|singletons|abbreviations|smoking|alcohol|phones|"
        r"shoes|flash photography|deploys|deployments|merges|force-pushes|panics|voice-over|flashbacks|narration|"
        r"dialogue|formatting|renames) (?!(?:needed|required|found|left|since|so far|yet|there|today|were|was|is|are|"
        r"have|has|to|came|in sight))",
    ),
    _constraint("no", r"(?: rules?| rules now) : (?:[^ ]+ ){0,12}no | so no (?:[^ ,]+) , no (?:[^ ,]+) (?:,|and) "),
    _constraint(
        "only",
        r"^ (?:please )?only (?:use|accept|support|deploy|run|merge|commit|allow) (?!it |this |that |once |if |when )|"
        r" (?:we|it|api|server|system|site|app|service) only (?:supports?|accepts?|allows?) ",
    ),
    _constraint(
        "won't can't cannot mustn't do",
        r" (?:can't|cannot|mustn't) be (?:before|later than|after (?:the|\d)|earlier than|longer than|larger than|"
        r"bigger than|higher than|heavier than|more than|lower than|older than|changed after) |"
        rf"^ the (?:{DAY}) won't do ",
    ),
)
_LIMIT = (
    _constraint(
        "requirement mandatory non-negotiable limit rule policy condition conditions rules maximum cap ceiling",
        r" (?:hard|strict|fixed|legal|firm) (?:requirement|limit|constraint|maximum|deadline) | (?:is|are|that's|"
        r"it's) (?:a|an|our|the|my) (?:absolute |house |first |only |company )?(?:requirement|rule|policy) (?!of |"
        r"that i |about |i |you )|^ (?:and |our |my |the |one |new |first |house )*(?:rule|policy|limit|maximum|"
        r"cap)(?: for [^ ]+)? : (?=[^ ]+ [^ ]+ )|^ house rules(?: now)? : (?=[^ ]+ [^ ]+ )|^ (?:with |on |one |two |"
        r"three )+conditions? : (?=[^ ]+ [^ ]+ )| non-negotiable | is my ceiling ",
    ),
    _constraint(
        "cannot can't not may exceed shouldn't mustn't never",
        r" (?:cannot|can't|may not|may never|must not|should not|shouldn't|mustn't|must never) (?:ever )?(?:exceed|"
        r"go (?:over|above|beyond)|cost more|take longer|take more|be (?:more|longer|larger|bigger|heavier|"
        r"higher) than) ",
    ),
    _constraint(
        "than most least max maximum under below within minimum",
        r"^ (?:keep |stay |spend |use |budget |limit |with ){1,2}(?:[^ ]+ ){0,3}(?:no (?:later|more|longer|earlier|"
        r"less|fewer) than|at (?:the )?(?:most|least)) [^ ]*\d|^ (?:so |and )?(?:no (?:later|more|longer|less|"
        r"fewer) than|at (?:the )?most|max|maximum|minimum) (?:[^ ]*\d[^ ]*|one|two|three|four|five|six|"
        r"ten) (?!people|of )(?:[^ ]+ ){1,4}$| (?:may|can|must|will|should|we|to) (?:only )?(?:hold|have|spend|take|"
        r"use|contain|cost|order) (?:[^ ]+ ){0,3}[^ ]*\d[^ ]* (?:[^ ]+ ){0,3}(?:at most|at the most|max) | (?:has|"
        r"have) to (?:stay|be|remain) (?:below|under|within) ",
    ),
    _constraint("requires", r" requires (?:at least |ten |two |three |five |a minimum |\d)"),
    _constraint("deadline", r" deadline [^,]{0,40}(?:is fixed|can't be moved|cannot be moved|is firm|is hard) "),
)
_OTHER_LANGUAGES = (
    _constraint(
        "darf durfen auf unter",
        r"(?<! du)(?<! man) (?:darf|durfen) (?:[^ ]+ ){0,5}(?:nicht|nichts|nie|niemals|kein\w{0,2}|"
        r"auf keinen fall) (?!vergessen|so )| auf keinen fall (?:[^ ]+ ){1,9}| unter keinen umstanden ",
    ),
    _constraint(
        "muss mussen",
        r"(?<! ich)(?<! du) (?:muss|mussen) (?!(?:ich|du) )(?:[^ ]+ ){0,6}(?:unbedingt|zwingend|mindestens|spatestens|"
        r"hochstens|bleiben|ohne (?:internet|netz)|offline|laufen$) |(?:muss|mussen) (?:ohne|auf|mit|unter|"
        r"in) (?:[^ ]+ ){1,4}(?:laufen|funktionieren|passen) | also muss er | mit einer bedingung :",
    ),
    _constraint(
        "soll sollen sollte hochstens maximal mindestens",
        r"(?<! ich)(?<! das) soll(?:en)? (?!(?:ich|das|wir) )(?:[^ ]+ ){0,5}(?:nicht|nie|"
        r"kein\w{0,2}) (?=(?:[^ ]+ ){1,2}$)| (?:soll|sollen|darf|durfen|nur) (?:[^ ]+ ){0,7}(?:hochstens|maximal|"
        r"mindestens) (?:[^ ]*\d|ein|zwei|drei|vier|funf|sechs|zehn)",
    ),
    _constraint(
        "debe deben prohibido obligatorio bajo se tiene tienen maximo",
        r" no deben? (?!ser tarde|de ser)| deben? (?:soportar|tener|estar|usar|funcionar|caber|cumplir) | (?:esta|"
        r"es) (?:prohibido|obligatorio) | bajo ninguna circunstancia |^ (?:aqui )?no se pueden? (?!negar|saber|creer|"
        r"vivir)[^ ]+ | (?:tiene|tienen) que (?:soportar|aguantar|funcionar|caber|cumplir|durar) ",
    ),
    _constraint(
        "doit doivent interdit obligatoire aucun faut",
        r" ne (?:doit|doivent) (?:pas|jamais) | (?:doit|doivent) (?:absolument|imperativement|toujours|tenir sur|"
        r"rester|fonctionner|supporter|passer par) | (?:est|c'est) (?:interdit|obligatoire) | en aucun cas |"
        r" il faut que (?:ca|cela|le [^ ]+|la [^ ]+) (?:marche|tienne|soit|reste|fonctionne) ",
    ),
    _constraint(
        "vietato proibido obbligatorio obrigatorio deve devono non finche minimo",
        r" (?:e|esta) (?:vietato|proibido|obbligatorio|obrigatorio) | non (?:deve|devono) (?!essere (?:facile|tardi))|"
        r" non si tocca(?:no)? |^ minimo (?:duas|tres|due|tre|\d)",
    ),
)

RULE_PATTERNS: tuple[LabelPattern, ...] = (*_OBLIGATION, *_PROHIBITION, *_LIMIT, *_OTHER_LANGUAGES)

NO_RULE_CONTEXT = re.compile(
    r" i (?:thought|suppose|guess|assumed|heard|wonder|dreamt|dreamed) | (?:they|people|he|she|maman|mama|mum|mom|"
    r"dad) (?:say|says|said|think|thinks|reckons|swears|told) | (?:my|his|her|the) [^ ]+ (?:says|said|thinks|reckons|"
    r"swears|used to say) | used to | (?:film|book|song|story|novel|movie) "
)
"""Context in which a rule is supposed, hearsay or narrated."""
