"""Patterns that tell rules, corrections and errors from sentences that merely sound like them. Pure: data.

Each pattern is searched in `Sentence.spaced` if one of its trigger words is in the sentence. Every repetition is
bounded or of one character class, so matching is linear in the sentence.
"""

import re
from functools import partial
from typing import NamedTuple


class LabelPattern(NamedTuple):
    """The pattern of a label, searched in sentences with at least one of its trigger words."""

    label: str
    triggers: frozenset[str]
    pattern: re.Pattern[str]


def _pattern(label: str, triggers: str, pattern: str) -> LabelPattern:
    return LabelPattern(label, frozenset(triggers.split()), re.compile(pattern))


_FEW = r"(?:[^,:?! ]+ ){0,6}"
"""Up to six words of a clause."""

_DO = (
    r"(?:use|touch|change|delete|remove|drop|commit|push|force-push|deploy|merge|modify|edit|overwrite|rename|add|"
    r"install|call|email|send|share|store|log|tell|mention|show|include|suggest|write|run|ask|check|test|validate|"
    r"sanitize|sanitise|escape|encrypt|hash|keep|put|back|book|buy|order|serve|give|feed|cook|print|publish|post|"
    r"expose|hardcode|hard-code|trust|skip|disable|restart|connect|open|round|wear|lock|turn)"
)
"""Verbs of commands with "always" or "never"."""

_EPISTEMIC = (
    r"(?:have (?!(?:a|an|the|at|no|all|two|three|four|our|its|their|exactly|to) )|"
    r"say |admit |confess |know |think |feel |seem |look |sound |mean |hate |love |miss |try |see |come |visit |read |"
    r"watch |meet |hear |taste |wonder |remember |laugh |cry |grumble |complain |"
    r"be (?:so |very |really |a |an |the |quite |such |getting |feeling |kidding |joking |something |some |about |"
    r"like |in |at |on |out |nice|furious|angry|pleased|glad|worried|nervous|starving|hungry|freezing|gorgeous|lonely|"
    r"hard|tired|tough|great|lovely|fun|awesome|amazing|exhaust|excit|proud|happy|sad|mad|rough|strange|weird|"
    r"wonderful|awful|terrible|thrilled|relieved|delicious|beautiful|difficult|frustrat|true|right|wrong|one |why |"
    r"what |how |because |him |her |them |me |it |mine |yours ))"
)
"""Words after `must` that guess or invite, and oblige no one."""

_ADVERB = r"(?:not|never|always|only|also|all|still)"
_MUST = rf"(?<! surely) (?:must|mustn't)(?: {_ADVERB})* (?!{_ADVERB} |{_EPISTEMIC})\w"

_NEVER = (
    rf"(?:^| ,| and| but| please| so| :) (?:never|always|never ever|do not|don't|do not ever|don't ever) (?:ever )?"
    rf"(?!(?<=n't )(?:tell|ask|mention|share|call|wear|book) ){_DO} "
)

_HARM = (
    r"(?:validat|sanit|escap|inject|xss|csrf|password|passwort|passphrase|credential|secret|token|api key|apikey|"
    r"api-key|private key|encrypt|verschlussel|plaintext|plain text|plain-text|klartext|pii|personal data|"
    r"personenbezogen|gdpr|dsgvo|rgpd|hipaa|production (?:data|database|db|server)|prod (?:data|database|db)|backup|"
    r"drop table|secur|unsafe|safety|sicherheit|seguridad|securit|allerg|peanut|penicillin|epipen|anaphyla|medic|"
    r"insulin|overdose|dosage|poison|toxic|bleach|seizure|pacemaker|emergency|suicid|self-harm|electric shock|"
    r"live wire|gas valve|flammab|seat belt|harness|contrasena|mot de passe|chiffr|cifrad|user input|untrusted|"
    r"authenticat|authoriz|authoris)"
)
"""Topics where a breach does harm: security, personal data, health."""

_DATE_OR_NUMBER = (
    r"(?:the |on |at |in |den |am |el |le |a ){0,2}(?:\d|monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
    r"january|february|march|april|may |june|july|august|september|october|november|december|montag|dienstag|mittwoch|"
    r"donnerstag|freitag)"
)

_NOT_DENIED = r"(?!(?:not|no|never|nicht|keine|pas|aucune|ninguna) )\w+"
"""A word that does not negate the statement."""

_TAKEN_BACK = r"(?:wrong|not right|not correct|incorrect|not true|not what i|not it )"

_constraint, _safety, _decision, _correction, _error = (
    partial(_pattern, label) for label in ("CONSTRAINT", "SAFETY", "DECISION", "CORRECTION", "ERROR")
)

LABEL_PATTERNS: tuple[LabelPattern, ...] = (
    # Constraints.
    _constraint("must mustn't", rf"(?<! i)(?<! you){_MUST}"),
    _constraint("must mustn't", rf" i (?:must (?:not|never)|mustn't) (?!{_EPISTEMIC})"),
    _constraint(
        "must mustn't",
        rf" you (?:must (?:not|never|always|only|support|use|keep|return|answer|write)|mustn't) (?!{_EPISTEMIC})",
    ),
    _constraint("never always not don't", _NEVER),
    _constraint("under on no", r" (?:under no circumstances|on no account|no matter what ,) "),
    _constraint(
        "requirement mandatory non-negotiable limit",
        r" (?:hard (?:requirement|limit|constraint)|(?:is|are) mandatory|non-negotiable) ",
    ),
    _constraint(
        "cannot can't not",
        r" (?:cannot|can't|may not|must not|should not|shouldn't) (?:ever )?(?:exceed|go over|go above|cost more|"
        r"take longer|take more|be more than|be longer than) ",
    ),
    _constraint(
        "than most least",
        r"^ (?:keep |stay |spend |use |budget |limit |with )?(?:[^ ]+ ){0,3}(?:no (?:later|more|longer|earlier|"
        r"less|fewer) than|at (?:the )?(?:most|least)) [^ ]*\d",
    ),
    _constraint(
        "darf durfen auf unter",
        r" (?:darf|durfen) (?:[^ ]+ ){0,4}(?:nicht|nie|niemals|kein\w{0,2}|auf keinen fall) | auf keinen fall |"
        r" unter keinen umstanden ",
    ),
    _constraint(
        "muss mussen", r" (?:muss|mussen) (?:[^ ]+ ){0,3}(?:unbedingt|zwingend|mindestens|spatestens|hochstens) "
    ),
    _constraint(
        "debe deben prohibido obligatorio bajo nunca",
        r" no deben? | deben? (?:ser|soportar|tener|estar|usar) | (?:esta|es) (?:prohibido|obligatorio) |"
        r" bajo ninguna circunstancia ",
    ),
    _constraint(
        "doit doivent interdit obligatoire aucun",
        r" ne (?:doit|doivent) (?:pas|jamais) | (?:doit|doivent) (?:absolument|imperativement|toujours) | (?:est|"
        r"c'est) (?:interdit|obligatoire) | en aucun cas ",
    ),
    _constraint(
        "nothing nobody no",
        r" (?:nothing|nobody|no one) (?:is|gets|goes|may be|can be) (?:[^ ]+ ){1,3}(?:until|before|without) "
        r"| no (?:deploys?|deployments?|releases?|changes?|merges?) (?:[^ ]+ ){0,3}(?:until|before|on|after|without) ",
    ),
    # Safety: constraints with harm.
    _safety("must mustn't shall", rf"^(?=.*(?:(?<! i)(?<! you){_MUST}| shall ))(?=.* {_HARM})"),
    _safety("never always not don't", rf"^(?=.*{_NEVER})(?=.* {_HARM})"),
    _safety(
        "allergic allergy allergisch allergie alergia alergico alergica allergique anaphylactic",
        rf"(?<! no)(?<! ni) (?:am|is|are|i'm|she's|he's|they're|bin|ist|sind|soy|es|suis|est)"
        rf"(?: {_NOT_DENIED}){{0,3}} (?:allergic to|allergisch|alergic[oa]|allergique)|"
        rf"(?<! no) (?:have|has|'s got|have got|hat|habe|tiene|tengo|a|ai) (?:{_NOT_DENIED} ){{0,3}}"
        rf"(?:allergy|allergie|alergia) | anaphylactic ",
    ),
    _safety(
        "safety safety-critical sicherheit",
        r" (?:safety(?: |-)critical|safety requirement|for safety reasons|aus sicherheitsgrunden) ",
    ),
    # Decisions, without phrases such as `dropped off` and `keep trying`.
    _decision("picked", r" (?:we|i|we've|i've) picked (?!up )"),
    _decision("dropped", r" (?:we|i|we've|i've) dropped (?!off |by |in |out )"),
    _decision("keep", r"^ let's keep (?![^ ]+ing )"),
    # Corrections.
    _correction(
        "no",
        rf"^ no (?:, )?(?:use|make it|keep|put|go with|take|call it|write|change|set|name it|not |i meant|i said|"
        rf"i mean|i asked|that's {_TAKEN_BACK}|that is {_TAKEN_BACK}|rather|wait ,)",
    ),
    _correction("no", rf"^ no , {_FEW}(?:, not |instead |rather than |instead of )"),
    _correction(
        "actually",
        rf"^ actually (?:, )?(?:no |scratch|make (?:it|that)|use |not |let's (?:use|not|do|go|make|change)|i meant|"
        rf"change |{_FEW}(?:, not |instead of |rather than ))",
    ),
    _correction(
        "meant mean misspoke mistake mistaken wrong incorrect scratch strike correction correct right what true",
        rf"^ (?:correction|scratch that|strike that|i misspoke|my mistake|i was (?:wrong|mistaken)|"
        rf"that's {_TAKEN_BACK}|that is {_TAKEN_BACK}|that was wrong|you're (?:wrong|mistaken)|you (?:got|"
        rf"have) {_FEW}wrong|i (?:got|had) {_FEW}wrong|i meant|what i meant|wrong [,:])",
    ),
    _correction("not", rf"^ (?:it's|it is|it was|that's|that was|the|my|his|her|our) {_FEW}, not {_DATE_OR_NUMBER}"),
    _correction(
        "forget ignore changed plan plans",
        r"^ (?:forget|ignore) what i (?:said|told|wrote)| i(?:'ve)? changed my mind | change of plans? ",
    ),
    _correction(
        "nein meinte stimmt falsch korrektur geirrt vertan doch",
        r"^ nein ,? ?(?:nimm|nehmen|nicht|das (?:ist|war) falsch|ich meinte|benutz|verwende|doch nicht|sondern)|"
        r" ich meinte | (?:das )?stimmt nicht |^ (?:falsch|korrektur) [,:]| (?:habe ich|ich habe|"
        r"hab) mich (?:geirrt|vertan|verschrieben) | doch lieber ",
    ),
    _correction(
        "no equivoque correccion decir incorrecto",
        r"^ no ,? ?(?:usa|uses|quise decir|queria decir|digo|mejor|pon)| quise decir | queria decir |"
        r" me equivoque |^ correccion [,:]| eso (?:no es|es in)correcto ",
    ),
    _correction(
        "non voulais trompe correction faux",
        r"^ non ,? ?(?:utilise|prends|mets|je voulais dire|pas )| je voulais dire | je me suis trompee? |"
        r"^ (?:correction|c'est faux) [,:]?",
    ),
    # Errors.
    _error("stack traceback stacktrace", r" (?:stack trace|stacktrace|traceback) "),
    _error(
        "error errors exception fehler erreur fallo",
        r"^ (?:error|fatal error|exception|fehler|erreur|fallo) :| (?:getting|got|get|gets|seeing|see|throws|threw|"
        r"raises|raised|hit|hitting|with|shows|says|returns|returned|gives) (?:an? |the |this |that |me |"
        r"same )*(?:\w+ ){0,2}(?:error|errors|exception|500|502|503) ",
    ),
    _error(
        "fails failed failing crashes crashed crashing",
        r" (?:it|build|tests?|login|deploy|deployment|job|server|service|app|page|script|import|export|query|"
        r"request|upload|pipeline|migration|ci|\w+ test|\w+ tests|this|still|keeps|keep|is|"
        r"are) (?:now |again |still |all |just )?(?:fails?|failed|failing|crash(?:es|ed|ing)?) ",
    ),
    _error(
        "work works working start starts load loads open boot funktioniert startet funciona arranca marche fonctionne",
        r" (?:doesn't|does not|don't|isn't|is not|aren't|won't|will not|stopped|not) (?:\w+ )?(?:work|working|"
        r"start|starting|load|loading|boot|booting|compile|respond)(?: anymore| any more| again| at all)? |"
        r" (?:funktioniert|startet|ladt) (?:\w+ ){0,2}(?:nicht|nicht mehr) | (?:no|ya no) (?:funciona|arranca|"
        r"carga) | ne (?:marche|fonctionne|demarre) (?:pas|plus) ",
    ),
    _error(
        "broken timeout out crash crashes segfault panic stuck kaputt",
        r" (?:is|are|it's|got|still) (?:\w+ )?(?:broken|stuck|kaputt|down again) | (?:times|timed|timing) out |"
        r" segfaults? | kernel panic | panic : ",
    ),
)

NO_ERROR_CONTEXT = re.compile(
    r" (?:if|unless|whenever|would|might|could|should|may|wenn|falls|in case|"
    r"(?:no|without|zero|0) (?:more |such |any )?(?:errors?|exceptions?|failures?|crashes|problems?|fehler)|"
    r"handle|handles|handling|error (?:handling|message|messages|rate|budget|code|codes|bars?)|"
    r"errors? (?:are|is) (?:logged|handled)|yesterday's|used to|must|don't|never) "
)
"""Context in which an error is not reported: supposed, denied, or a task."""

SUPPOSITION = re.compile(r" i (?:thought|suppose|guess|assumed|heard|wonder|dreamt|dreamed) ")
"""Context in which a rule is only supposed."""
