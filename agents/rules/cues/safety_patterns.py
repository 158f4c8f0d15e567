"""Patterns of safety requirements: allergies and illnesses, secrets and dangerous things. Pure: data.

A rule that obliges or forbids (`agents.rules.cues.rule_patterns`) is a safety requirement too where it speaks of harm.
"""

import re
from functools import partial

from agents.rules.cues.label_patterns import WORD, LabelPattern, label_pattern

_safety = partial(label_pattern, "SAFETY")

_FOOD = (
    r"(?:(?:raw |any |cow's |shell)?(?:peanuts?|nuts?|almonds?|walnuts?|hazelnuts?|cashews|brazil nuts|sesame|"
    r"shellfish|shrimps?|prawns|gluten|wheat|dairy|lactose|milk|eggs?|soya?|fish|seafood|penicillin|aspirin|ibuprofen|"
    r"latex|grapefruit|alcohol|feathers|bee stings?|wasp stings?|celery|mustard|chocolate|grapes|caffeine|sugar))"
)
_JOCULAR = (
    r"(?!(?:jargon|hard work|work|mornings?|meetings?|commitment|fun|change|people|nonsense|bullshit|exercise|"
    r"mondays?|criticism|effort|adjectives|drama|compliments|small talk|paperwork|deadlines) )"
)
_NOT_DENIED = r"(?!(?:not|no|never|nicht|keine|pas|aucune|ninguna|if|isn't|aren't) )[^ ,]+ "

_HEALTH = (
    _safety(
        "allergic allergisch alergico alergica allergique anaphylactic",
        r"^(?!.* (?:if|nobody|no one|whether|not|isn't|aren't|wasn't) (?:[^ ]+ ){0,6}allerg).* (?:am|is|are|i'm|she's|"
        rf"he's|they're|we're) (?:{_NOT_DENIED}){{0,2}}allergic (?:to {_JOCULAR}|,|$|and |but |too )|"
        rf"(?<! no)(?<! ni) (?:bin|ist|sind|soy|es|suis|est) (?:{_NOT_DENIED}){{0,3}}(?:allergisch|alergic[oa]|"
        r"allergique) | anaphylactic ",
    ),
    _safety(
        "allergy allergies allergie allergien alergia alergias intolerance",
        r"(?<! no)(?<! ni) (?:have|has|'s got|have got|he's got|she's got|i've got|hat|habe|tiene|tengo|a|"
        rf"ai) (?:{_NOT_DENIED}){{0,4}}(?:allerg(?:y|ies|ie|ien)|alergias?|intolerance) ",
    ),
    _safety("pferdehaarallergie nussallergie katzenallergie hausstauballergie pollenallergie", r" (?:hat|habe) "),
    _safety(
        "coeliac celiac diabetic epileptic asthmatic intolerant pregnant celiaco celiaca coeliaque",
        r"^(?!.* (?:if|nobody|no one|whether|was|were) ).* (?:am|is|are|i'm|she's|he's|they're|we're|soy|es|suis|"
        rf"est) (?:(?:{_NOT_DENIED}){{0,3}}(?:coeliac|celiac|diabetic|epileptic|asthmatic|intolerant|celiac[oa]|"
        r"coeliaque) |(?:[^ ]+ )?pregnant , (?:so )?no )",
    ),
    _safety(
        "epipen warfarin adrenaline anticoagulants insulin",
        r" (?:carries|carry|takes|take|is on|are on|am on|i'm on|he's on|she's on|needs) (?:[^ ]+ ){0,2}(?:epipen|"
        r"adrenaline|warfarin|anticoagulants|insulin) ",
    ),
    _safety(
        "no can't cannot never mustn't not",
        rf"(?: so|^|,) (?:nothing with|no|absolutely no) (?:{WORD} ){{0,1}}{_FOOD} (?:at all |, |for (?:her|him|me|"
        r"them|us) )?(?:$|for (?:her|him|me|them|us) |or )|(?<! i) (?:can't|cannot|mustn't|must not|may not) (?:have|"
        rf"eat|drink|touch) (?:any )?{_FOOD} (?!without|in )|(?:^| to) never (?:to )?(?:give|feed|touch|eat|"
        rf"serve) (?:{WORD} ){{0,3}}{_FOOD} ",
    ),
    _safety(
        "fur feathers nuts nut peanuts walnuts shellfish sauce",
        r" (?:can't|cannot) have (?:[^,]{1,40})(?:feathers|fur|pollen|perfume) [^?]{0,60}(?:swells|wheez|choke|"
        r"hospital|ambulance|can't breathe)| one (?:nut|bite|sip|sting|crumb) and (?:[^ ]+ ){0,6}(?:ambulance|"
        r"hospital) ",
    ),
    _safety("vertrage vertragt", r" (?:vertrage|vertragt) kein(?:e|en)? "),
    _safety("bleach medicine medicines pills matches knives", r" out of (?:the )?(?:reach|kids'|children's)"),
)
_SECURITY = (
    _safety(
        "secrets keys passwords credentials tokens data emails",
        r" (?:secrets|passwords|credentials|api keys|private keys|tokens) (?:do not|don't|never) (?:belong|go) |"
        r"^ (?:and |so )?no (?:secrets|api keys|passwords|credentials|tokens|card data|personal data|"
        r"customer data) (?:in|on|to) ",
    ),
    _safety(
        "safety safety-critical sicherheit safety-relevant",
        r" (?:safety(?: |-)critical|safety requirement|for safety reasons|aus sicherheitsgrunden) ",
    ),
    _safety("input statements", r" (?:must|shall|should always) (?:be )?(?:validat|sanitis|sanitiz|escap)[^ ]* "),
)

SAFETY_PATTERNS: tuple[LabelPattern, ...] = (*_HEALTH, *_SECURITY)

HARM = re.compile(
    r" (?:validat[^ ]* (?:all |every |any )?(?:inputs?|uploads?) |saniti[sz]|escaped |injection |xss|csrf|passw(?:ord|"
    r"ort)|passphrase|credential|(?<! a )(?<! the )(?<! my )(?<! our )(?<! your )secrets? (?!door|santa|ingredient|"
    r"recipe|sauce)|tokens? |api keys?|apikey|api-key|private key|production (?:data|database|db|key|server)|"
    r"prod (?:data|database|db)|encrypt|unencrypted|verschlussel|plaintext|plain text|plain-text|klartext|pii |"
    r"personal data|health data|customer (?:data|emails|addresses)|card (?:data|numbers?)|personenbezogen|gdpr|dsgvo|"
    r"rgpd|hipaa|sql |drop table|unsafe|sicherheit|seguridad|allerg|peanut|penicillin|epipen|anaphyla|medicine|"
    r"medication|insulin|overdose|dosage|poison|toxic|bleach|pacemaker|suicid|self-harm|electric shock|live wire|"
    r"gas valve|flammab|seat belt|safety harness|contrasena|mot de passe|chiffr|cifrad|user input|untrusted|virus|"
    r"authenticat|authoriz|authoris|chocolate or grapes|raw (?:meat|fish|eggs))"
)
"""Topics where the breach of a rule does harm: security, personal data, health."""
