"""Patterns of standing preferences and of instructions for the answers. Pure: data.

How the speaker wants things in general. A wish of the moment ("please send me the file"), a liking ("my favourite film
is Amarcord") and a feeling ("I hate this man") are none.
"""

import re
from functools import partial

from agents.rules.cues.label_patterns import WORD, LabelPattern, label_pattern

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
