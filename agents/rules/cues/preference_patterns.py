"""Patterns of standing preferences, of instructions for the answers, of corrections and of withdrawals. Pure: data.

A preference is how the speaker wants things in general. Not preferences: a wish of the moment ("please send me the
file"), a liking ("my favourite film is Amarcord") and a feeling ("I hate this man"). A mere "no" is an answer, and
"it's not the cold, it's the wind" is a figure of speech: neither corrects.
"""

import re
from functools import partial

from agents.rules.cues.label_phrases import DAY, WORD, LabelPattern, label_pattern

_instruction, _preference = partial(label_pattern, "INSTRUCTION"), partial(label_pattern, "STANDING_PREFERENCE")

_STYLE = (
    r"(?:emojis?|emoticons?|headings?|headers|bullets?|bullet points|tables?|markdown|exclamation marks?|jargon|"
    r"abbreviations|semicolons|footnotes|slang|superlatives|buzzwords|cliches|filler|marketing language|disclaimers)"
)
_BRIEF = r"(?:short|brief|concise|simple|plain|crisp|terse|to the point|precise|blunt|direct|critical|formal|informal)"
_YOUR = (
    r"(?:it|this|answers|replies|summaries|explanations|your (?:[^ ]+ )?(?:answers|replies|explanations|summaries|"
    r"texts))"
)
_ANSWER = r"(?:answer|reply|respond|write|speak|talk|explain|contesta|responde|antworte)"

PREFERENCE_PATTERNS: tuple[LabelPattern, ...] = (
    _instruction(
        "now",
        r"^ (?:so |and |please |, |and then |one new rule [^,]{0,30}: )*(?:from|as of) now on (?:, )?(?!i |i'm|i'll|"
        r"it |it's|we |he |she |they |there )|^ (?!so |i |we |every |each |it |it's |he |she |they |"
        r"the )(?:[^ ]+ ){1,12}from now on (?:, please )?$| from now on (?:please|always|never|only|you|use|answer|"
        r"write) | from now on it has to ",
    ),
    _instruction("future forward", r" (?:in (?:the )?future|going forward) ,"),
    _instruction(
        "please always never immer nie niemals",
        rf"^ (?:please )?(?:always|never) (?:{_ANSWER}|tell me|ask me|call me|assume|apologi[sz]e|flatter|praise|"
        r"give me|show me|start your|end your|begin your|use the word|say the word) (?!him|her|them|about|off|down|"
        r"back|of )|^ please (?:always|never) ",
    ),
    _instruction("never", r" never (?:tell|call|ask) me (?!about|that he|that she|anything)"),
    _instruction(
        "answer reply respond write speak talk keep",
        rf"^ (?:please )?{_ANSWER} (?:me |to me )?(?:only |always |just )?(?:in (?!advance|case|time|the (?:comments|"
        r"email|thread)|full|detail|your own time)|with (?!him|her|them|me |us |a doctor)|as if |like |briefly|"
        rf"shortly|at most|plainly)(?:{WORD} ){{1,5}}(?:$|from |, |even |unless )|"
        rf"^ (?:please )?keep {_YOUR} {_BRIEF} (?!, they|they say)",
    ),
    _instruction("be", rf"^ (?:please )?be (?:more |very |always )?{_BRIEF} (?:$|with me |in |when |, )"),
    _instruction(
        "call",
        r"^ (?:please )?(?:just )?call me (?!when|back|at|if|tomorrow|tonight|later|on|by|in|as|crazy|old|any|a|an|"
        r"the|now|maybe|please|soon|once|first|before|after|every)[^ ]+ (?:$|, not |please |instead )",
    ),
    _instruction(
        "stop",
        r"^ (?:please )?stop (?:using|saying|apologi[sz]ing|adding|repeating|praising|flattering|explaining|"
        r"calling me|telling me|asking me) (?!that |it |this |so |sorry |stuff |things $)",
    ),
    _instruction(
        "don't do not no without sin sans ohne keine",
        rf" (?:don't|do not) (?:use|add|include|give me|write|put) (?:any )?{_STYLE} |^ (?:and |please )?(?:don't|"
        r"do not) (?:apologi[sz]e (?:all|so|every|when|for (?:every|your))|praise me|flatter me|lecture me|sugarcoat|"
        r"repeat my|explain (?:things|what|how|every)|guess|call me (?!when|back|at|if|tomorrow|tonight|later|before|"
        r"after|on)|assume|summari[sz]e (?:at|what)|ask me (?:for|if|whether) (?:every|permission)|say (?!anything|a|"
        r"that|it|so|you|no|yes|more|goodbye|i|we|he|she|this|hello|nothing|word)[^ ]+ $)|(?: ,|^|:) (?:no|without|"
        rf"sin|ohne|sans|keine) (?:any )?(?:{_STYLE}|emoticonos|ausrufezeichen) (?!needed|required|yet|so far|left|"
        r"found)",
    ),
    _instruction(
        "want rather prefer like",
        rf" i(?:'d| would)? (?:want|like|need) you to (?:always|never|{_ANSWER}|use|ask (?:me )?before|stop|call me|"
        rf"speak|push back|be (?:{_BRIEF}|honest)|check with me|tell me (?:when|if)) | i(?:'d| would) (?:rather|"
        r"prefer it if|prefer if|prefer that) you (?!could|came|come|stay|went|go|took|take|had|were here)|"
        rf" i want (?:your )?{_BRIEF} (?:answers|replies|explanations|texts) | i (?:like|love|hate|"
        r"prefer) it when you ",
    ),
    _instruction("want", rf" i (?:don't|do not) want (?:any )?{_STYLE} "),
    _instruction(
        "when whenever if",
        r"^ (?:when|whenever|if) (?:i (?:ask|say|write|paste|send)|(?<! if )you (?:write (?!to )|answer|cite|reply|"
        rf"refactor|explain|translate|review|summari[sz]e|quote|propose|suggest)) (?:{WORD} ){{1,8}}(?:, |"
        r"you )(?:you |please |just |always |never |only |don't |drop |give |use |add |keep |put |show |write |say |"
        r"ask )",
    ),
    _instruction(
        "name talk treat address",
        r"^ (?:please )?(?:use my first name|talk to me (?:like|as)|treat me (?:like|as)|address me (?:as|by|with)|"
        r"use (?:my|the) (?:nick)?name [^ ]+ (?:for me|when))",
    ),
    _instruction(
        "jetzt sofort kunftig zukunft bitte antworte antworten schreib nenn duze sieze",
        r" (?:ab jetzt|ab sofort) | (?:kunftig|in zukunft) (?:bitte |nur |immer |keine? |auf )|"
        r"^ (?:bitte )?(?:antworte|antworten sie|schreib)(?: mir)?(?: bitte)? (?:immer|nur|kurz|kunftig|"
        r"auf (?:deutsch|englisch))| bitte (?:immer|nie|niemals) |^ (?:bitte )?(?:duze|sieze|nenn) mich ",
    ),
    _instruction(
        "adelante responde contesta respondeme contestame favor dorenavant desormais reponds repondez "
        "reponds-moi tutoie-moi "
        "vouvoie-moi",
        r" de ahora en adelante |^ (?:por favor )?(?:responde|contesta|respondeme|contestame) (?:siempre|en|con) |"
        r" por favor (?:siempre|nunca) | (?:dorenavant|desormais) |^ (?:reponds|repondez|reponds-moi) (?:toujours|"
        r"en) | (?:tutoie|vouvoie)-moi ",
    ),
    # Preferences in general.
    _preference(
        "prefer prefers bevorzuge prefiero prefere prefiro preferisco",
        r"(?<! would)(?<! i'd) (?:i|we) (?:(?:really|always|usually|generally|much|still|strongly|"
        r"definitely) )?prefer (?!it |that |this |him |her |them |not |to think|to say|to be left|if )|"
        r" ich bevorzuge | prefiero (?:que (?:me|no)|[^ ]+ (?:a|en vez|que) |a alguien)| je prefere (?:les|la|le|des|"
        r"qu)| prefiro | preferisco ",
    ),
    _preference(
        "eat drink fly smoke",
        r"(?:^| ,| and| but| because| since| so) (?:i|we) (?:don't|do not|never) (?:eat|drink|fly|smoke) (?!it |that |"
        r"this |them |much |any of|yet|now|today|tonight|enough|until|first|business)(?=[^ ]+ |$)",
    ),
    _preference(
        "like",
        rf" i (?:don't|do not) like (?:phone calls|calls|surprises|{_STYLE}|long (?:answers|texts|emails|calls|"
        rf"meetings)|spicy|sweet)| i like my (?:{WORD} ){{1,4}}(?:as|in|at|with|without|black|hot|cold|short|strong|"
        r"weak|sweet|plain) ",
    ),
    _preference(
        "always usually",
        r"(?:^|,) (?:and |so |but )?(?:i|we) (?:always|usually) (?:use|drink|eat|work|order|fly|travel|book|pay|"
        r"sit) (?!it|that|up|out|to )(?!(?:[^ ]+ ){0,6}(?:too|sadly|unfortunately|enough) )",
    ),
    _preference(
        "gustan mag aime",
        r" no me gustan (?:las|los) (?:listas|llamadas|respuestas|tablas)| ich mag keine (?:langen|listen|anrufe|"
        r"tabellen)| je n'aime pas les (?:listes|appels|reponses) ",
    ),
)

STANDING = re.compile(r" (?:from now on|in future|always|never|every time|whenever) ")
"""Words that make a request of the moment an instruction."""


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


_withdrawal = partial(label_pattern, "WITHDRAWAL")

_RULE = r"(?:rule|limit|ban|freeze|restriction|requirement|constraint|policy|deadline|condition|cap|embargo)"

WITHDRAWAL_PATTERNS: tuple[LabelPattern, ...] = (
    _withdrawal(
        "rule limit ban freeze restriction requirement constraint policy deadline condition cap embargo",
        rf" {_RULE} (?:{WORD} ){{0,6}}(?:is|was|has been|are) (?:now )?(?:lifted|gone|off|dropped|over|cancelled|"
        r"history|void|withdrawn|repealed|obsolete|no more) |^ (?:and |so |ok |, )*(?:forget|scrap|drop|ignore|"
        rf"scratch|lift) (?:the|that|our|my) (?:{WORD} ){{0,5}}{_RULE} | (?:we|we've|we have) (?:lifted|dropped|"
        rf"scrapped|repealed) (?:the|that|our) (?:{WORD} ){{0,5}}{_RULE} ",
    ),
    _withdrawal(
        "longer anymore more",
        r" no longer (?:applies|apply|holds|hold|needed|necessary|required|forbidden|banned|mandatory|has to|have to|"
        r"needs to|need to|must|matters|valid) | (?:doesn't|does not|don't|do not) (?:apply|hold|matter|"
        r"have to [^,]{1,60}|need to [^,]{1,60}) (?:anymore|any more|any longer) ",
    ),
    _withdrawal(
        "allowed again may can",
        rf" (?:is|are) (?:now )?allowed (?:{WORD} ){{0,8}}again | (?:may|can) (?:{WORD} ){{1,8}}again (?:from now|now|"
        r"$|, )",
    ),
    _withdrawal(
        "gilt aufgehoben darf durfen",
        r" gilt nicht mehr | (?:ist|sind) aufgehoben | (?:darf|durfen) (?:[^ ]+ ){1,6}wieder ",
    ),
    _withdrawal(
        "ya plus",
        r" ya no (?:aplica|vale|hace falta|es obligatorio) | ne s'applique plus | n'est plus (?:obligatoire|interdit|"
        r"necessaire) ",
    ),
)
