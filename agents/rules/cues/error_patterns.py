"""Patterns of present errors, and of safety requirements: allergies, illnesses, secrets, dangerous things. Pure: data.

A failure that is past, supposed, handled, fixed, or emotional is not an error. A rule that obliges or forbids
(`agents.rules.cues.rule_patterns`) is also a safety requirement if it speaks of harm.
"""

import re
from functools import partial

from agents.rules.cues.label_phrases import WORD, LabelPattern, label_pattern

_error = partial(label_pattern, "ERROR")

_THING = (
    r"(?<! he)(?<! she)(?<! i)(?<! we)(?<! they)(?<! you)(?<! who)(?<! people)(?<! nobody)(?<! son)(?<! daughter)(?<! "
    r"wife)(?<! baby)(?<! shop)(?<! husband)(?<! mother)(?<! father)(?<! mum)(?<! mom)(?<! dad)(?<! boss)(?<! plan)"
    r"(?<! that)"
)
"""Not after a person."""

_NOT_UNTIL = r"(?!(?:[^ ]+ ){0,3}(?:until|till|before|unless|on (?:sundays?|mondays?|weekends?)|for me) )"
_DEVICE = (
    r"(?:work|start|load|boot|compile|respond|connect|sync|print|pair|charge|turn on|switch on|install|render|build|"
    r"authenticate|resolve|import|update|deploy|stop loading)"
)
_FAULT = (
    r"(?:crash(?:ing|es)?|fail(?:ing|s)?|freez(?:ing|es)|restart(?:ing|s)|disconnect(?:ing|s)|reboot(?:ing|s)|"
    r"hang(?:ing|s)|refus(?:ing|es)|alarming|tim(?:ing|es) out|shutting down|going offline|throwing|returning|looping|"
    r"flickering)"
)
_CODE = r"(?:40[013-9]|41[03]|42[29]|50[0234])"
_FAILING = (
    r"(?:fails|is failing|are failing|crashes|is crashing|hangs|freezes|locks up|times out|keeps timing out|segfaults)"
)

_AT = (
    r"(?=$|[,:]|when |on (?!the )|after |again |at (?:\d|start|boot|launch|login|runtime|the (?:start|same|login))|"
    r"with |since |while |as soon |in (?!the end)|for |forever |about |every (?:time|night|run|build|few|single|"
    r"other)|to (?:start|load|build|connect|open|install|compile|save|render|boot|parse|deploy|pull|push|fetch))"
)
"""Continuations of a report that something fails."""

ERROR_PATTERNS: tuple[LabelPattern, ...] = (
    _error(
        "stack traceback stacktrace",
        r" (?:stack trace|stacktrace|traceback) (?!(?:of|in|from) the (?:past|life)|with|for|is (?:long|ugly)|explain)",
    ),
    _error(
        "error errors exception fehler erreur fallo failed fail fatal",
        r"^ (?:error|fatal error|fatal|exception|fehler|erreur|fallo|failed|fail) : |"
        r"^ (?:[^ ]+ )?(?:npm )?error (?:code|[a-z]*\d)| (?:getting|get|gets|got|seeing|throws|threw|raises|shows|"
        r"says|returns|returned|gives|fails with|failed with|ends with|hitting|hit|see) (?:an? |the |this |that |me |"
        r"same |strange |weird )*(?:(?!no |any |without )[^ ,]+ ){0,2}(?:error|errors|exception) (?!of |"
        r"message (?:should|must)|budget|rate|bars?|handling|codes? from)",
    ),
    _error(
        "500 502 503 504 400 401 403 404 405 409 413 422 429 408",
        r" (?:an?|getting|keeps?|returns?|gives|throws|says|sends|devuelve|da|renvoie|liefert|error) (?:me )?(?:an? |"
        rf"http |error )?{_CODE} (?=$|error|unauthori|forbidden|not found|for |on |internal|bad|response|status|every|"
        r"when|since|again|although|even|now|all|, )",
    ),
    _error(
        "throws throwing throw raises getting get with",
        r" (?:throws|throwing|raises|getting|get|with) (?:an? |the )?(?:[^ ]+\.)?[a-z]{3,40}(?:error|exception) ",
    ),
    _error(
        "denied refused memory reset timeout deadlock modulenotfounderror connection lost enospc token",
        r" (?:permission denied|access denied|connection (?:refused|reset|timed out|lost)|(?:with|: ) out of memory|"
        r"no such file or directory|deadlock detected|lost connection to|says invalid token|with an? timeout|enospc|"
        r"cannot write) ",
    ),
    _error(
        "fails failed failing crashes crashed crashing hangs freezes locks times segfaults",
        rf" (?:my|the|our|this|that|its) [^ ,]+(?: [^ ,]+){{0,2}}{_THING} {_FAILING} {_AT}|(?: (?:it|this)|"
        rf"^ that) (?:now |again |still |always |just )?{_FAILING} {_AT}|"
        rf"^ [^ ,]+(?: [^ ,]+){{0,2}}{_THING} (?:crashes|hangs|times out|locks up|segfaults|freezes) {_AT}| (?:build|"
        r"tests?|login|deploy|deployment|job|server|service|app|page|script|import|export|query|request|upload|"
        r"pipeline|migration|ci|installation|backup|sync|[^ ]+ tests?) (?:now |again |still |all |just |"
        r"publishing )?(?:fails|failed (?!last|in the|yesterday)|failing|crash(?:es|ed|ing) (?!last|in the))|"
        r"^ [^ ]+ing fails (?!to )",
    ),
    _error(
        "keeps keep",
        rf" keeps? (?:on )?{_FAULT} | (?:i|we) keep getting (?:an? |the )?(?:[^ ]+ ){{0,2}}(?:{_CODE}|errors?|"
        r"exceptions?|timeouts?) ",
    ),
    _error(
        "stopped",
        rf"{_THING} (?:has |have |just |suddenly |it's )?stopped (?:working|responding|learning|pairing|loading|"
        r"syncing|connecting|charging|updating|printing|booting|sending) ",
    ),
    _error(
        "work working start load loading open boot booting compile respond connect sync print pair charge turn "
        "switch install render "
        "build authenticate resolve import update starting deploy",
        r"(?: (?:my|the|our|this|your|it|these|code|app|page|site|laptop|phone|server|service|docker|login|bluetooth|"
        rf"wifi|which)|(?:^| (?:my|the|our|this|your)) [^ ,]+(?: [^ ,]+){{0,2}}?){_THING}(?<! says) (?:doesn't|"
        r"does not|don't|do not|won't|will not|can't|cannot) (?:even |really |always |"
        rf"properly )?{_DEVICE} {_NOT_UNTIL}(?!out |in (?:theory|principle)|like |well |with (?:the|him|her|people|"
        rf"you)|an? |, we )|{_THING} (?:isn't|is not|aren't|are not) (?:\w+ )?(?:working|starting|loading|booting|"
        r"responding|compiling|connecting) ",
    ),
    _error(
        "log sign connect access reach install find",
        r" (?:i|we|users|customers|nobody) (?:can't|cannot|can not) (?:log in|sign in|connect (?!with)|access (?:the|"
        r"my|our)|reach the (?:server|site|api|database)|install (?:the (?:package|app|update)|[^ ]+ (?:on|with|"
        r"package))) |^ (?:pip|npm|docker|git|apt|cargo|gradle|maven) (?:can't|cannot) ",
    ),
    _error(
        "broken timeout out segfault panic stuck kaputt red down isn't",
        r" (?:login|site|page|build|server|link|app|checkout|search|prod|production|pipeline|ci|website|api|wifi|"
        r"internet|printer|template|feature|button|export|import|tests?|form|database|db|heating|boiler|it|it's|"
        r"everything|search|upload|vpn|queue) (?:is|are|got|was just)? ?(?:\w+ )?(?:broken(?! (?:down|into|up|even))|"
        r"red (?:again|since)|kaputt|down (?:again|since|right now|for everyone))| (?:gets|got|is|hangs) stuck (?:at|"
        r"on) [^ ]*\d| kernel panic | panic : |(?:requests?|calls?|queries|reservations|connections|payments|it|"
        r"jobs?) (?:times|time|keep timing|keeps timing) out | air isn't moving ",
    ),
    _error("oom out oom-killed", r" (?:gets|got|was|is|being) (?:oom-killed|killed by the oom)"),
    _error("code", r" exit code [1-9]\d* "),
    _error("burns black locks goes", r" goes black for | locks up after | everything burns on "),
    _error("prints", r" prints (?:blank|empty|garbage|gibberish) "),
    # German, Spanish, French, Italian, Portuguese.
    _error(
        "funktioniert startet ladt geht lauft druckt reagiert verbindet sturzt bricht hangt fehler fehlermeldung pumpt "
        "gehen kommen",
        r" (?:funktioniert|startet|ladt|druckt|reagiert|verbindet sich|pumpt) (?:[^ ]+ ){0,3}(?:nicht|nicht mehr) |"
        r" (?:geht|lauft) (?:die|der|das|mein|meine) [^ ]+ nicht mehr | sturzt (?:[^ ]+ ){0,5}ab |"
        r" bricht (?:[^ ]+ ){0,3}mit (?:einem )?fehler | hangt sich (?:[^ ]+ )?auf | (?:kommen|"
        r"gehen) (?:[^ ]+ ){0,4}nicht mehr an ",
    ),
    _error(
        "funciona arranca carga imprime enciende conecta responde abre compila cuelga error",
        r" no (?:me )?(?:funciona|arranca|carga|imprime|enciende|conecta|responde|compila) | da (?:un )?error |"
        r" se cuelga ",
    ),
    _error(
        "marche fonctionne demarre repond charge plante erreur",
        r" ne (?:marche|fonctionne|demarre|repond|charge) (?:pas|plus) | (?:l'application|l'appli|le serveur|le site|"
        r"ca|il) plante | renvoie une erreur ",
    ),
    _error(
        "non nao",
        r" non (?:funziona|parte piu|si avvia|si connette|carica) | nao (?:funciona|liga mais|carrega|conecta) ",
    ),
)

NO_ERROR_CONTEXT = re.compile(
    r" (?:if|unless|whenever|would|might|could|should|may|wenn|falls|in case|hope|hoping|wish|imagine|suppose|pretend|"
    r"what is|what's|nothing is|what to do|why do|(?:no|without|zero|0) (?:more |such |any )?(?:errors?|exceptions?|"
    r"failures?|crashes|problems?|fehler)|handle|handles|handling|error (?:handling|rate|budget|bars?)|errors? (?:are|"
    r"is) (?:logged|handled)|yesterday's|used to|must|(?:don't|do not|never|always) (?:log|throw|raise|catch|show|"
    r"crash|worry|fail|return)|never fails?|long fixed|(?:is|are|was|were|got|has been|now|already) (?:fixed|solved|"
    r"gone|resolved|repaired)|last year|years ago|ran for years|failed (?:login|password) attempts?) "
)
"""Context in which an error is not reported: supposed, denied, past, or a task."""


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
"""Topics in which breaking a rule does harm: security, personal data, health."""
