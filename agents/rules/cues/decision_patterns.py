"""Patterns of decisions. Pure: data.

A decision settles the future: a choice between alternatives, a change of plan, an agreement. Not decisions: open
questions, proposals to see or to talk, and idioms with the same verbs.
"""

import re
from functools import partial

from agents.rules.cues.label_phrases import DAY, WORD, LabelPattern, label_pattern

_decision = partial(label_pattern, "DECISION")

_I = r"(?:i|we|i've|we've|i have|we have|the (?:team|board|family|committee)|we both|we all)"
_SO = r"(?:so |ok |okay |then |and |but |right |well |fine |good |agreed |yes |no |nein |nee |, ){0,4}"
_PEOPLE = (
    r"(?:him|her|them|me|us|you|the (?:kids?|dogs?|children|bins|rubbish|boys|girls)|my (?:son|daughter|mother|wife))"
)
_TAKEN = (
    rf"(?!{_PEOPLE} |care |a (?:look|break|nap|walk|bath|shower|picture|photo|seat|breath|while|day)|it (?:back|from|"
    r"out|slow|easy|as|in|to|up|off|away|personally)|your word|notes?|time|turns|part|my time|the (?:blame|liberty|"
    r"chance|lead|time|hint|point|trouble|rest)|(?:it|that|this) (?:as|for) )"
)
_KEPT = (
    r"(?!(?:it|this|them|things) (?:short|brief|simple|up|down|to myself)|an eye|you |[^ ]+ing |my (?:fingers|eyes|"
    r"promise|word|mouth|distance)|in (?:touch|mind)|quiet|calm|up |on |at )"
)

_NO_CHOICE = (
    r"(?:what|how|that|so|as|such|here|there|this|yes|no|sure|where|whatever|like|strange|funny|oh|indeed|who|why|if|"
    r"when|because|since|i|we|me|you|he|she|think|say|than|says|said|know|knew|about|is|was|whose|though|beautiful|"
    r"lovely|nice|good|true|hard|easy|cold|hot|late|early|wrong|right|ok|okay|course|see|sometimes|always|never|hope|"
    r"and|but|well)"
)
"""Words that never name a choice before `it is`."""

_OFFER = r"(?:job|offer|flat|role|post|promotion|invitation|contract|proposal|house|deal|loan|commission)"

DECISION_PATTERNS: tuple[LabelPattern, ...] = (
    _decision(
        "decided chosen chose opted voted agreed settled settle picked postponed put ruled ended",
        rf" {_I} (?:(?:all|both|finally|actually|just|now|also|already|therefore|then|have|had|only|at last|jointly|"
        r"never) ){0,2}(?:decided (?!that (?:it was )?(?:too|so) )|chosen |chose (?!my words|your|the wrong|"
        r"to (?:ignore|believe))|opted |voted (?!in the)|agreed (?:to (?!disagree|differ|meet for)|on |not |"
        r"in the end|upon|that (?:we|i|the|he|she|they)(?: |')(?!were|was))|settled (?:on|for) |picked (?!up|out|on|"
        r"at|his|her|their|my|a fight|flowers|berries|strawberries|apples|mushrooms|him|them|you|it |me )|postponed |"
        r"put (?:it |that |this )?(?:off|back) (?:to|till|until|by) |ruled out |ended up (?:choosing|picking) |"
        r"settle (?:on|for) )",
    ),
    _decision(
        "decided",
        r" (?:that's|this is) what we(?:'ve| have)? decided | finally decided (?:to|on|against) | (?:he's|she's|"
        r"they've|he has|she has|they have) decided (?:to|on|against) ",
    ),
    _decision(
        "decided decision settled agreed final",
        rf"^ {_SO}(?:decided|(?:{WORD} )?decision|agreed|settled|final (?:decision|answer|offer|call|version|"
        r"choice)) [:,] (?!(?:it's|that's|she|he|they|but|he's|she's|totally|completely|lovely|nicely|thanks|i|you|"
        rf"you're|this|there|very|both|we should|so) )(?:{WORD} ){{2}}|^ {_SO}agreed (?:on|to|not to|that) |"
        rf"^ {_SO}decided (?:on|to|against) | (?:it's|it is|that's|then it's|is) (?:been )?(?:decided|"
        r"settled)(?! yet) (?!by |in the |whether |how )| been decided : ",
    ),
    _decision(
        "accepted turned declined cancelled withdrawn rejected called",
        r" (?:i|we|i've|we've|i have|we have) (?:(?:just|now|finally|already|gladly) )?(?:accepted (?:(?:the|their|"
        rf"his|her|an?) )?(?:{WORD} )?{_OFFER} |turned (?:(?:the|their|that|this|his|an?) )?(?:{_OFFER}|it|them|him|"
        rf"her) down |turned down (?:(?:the|their|that|this|his|an?) )?(?:{WORD} )?{_OFFER} |declined (?:the|their|"
        rf"his|her|it|an?) |cancelled |withdrawn (?:my|our|the) |called (?:it|the {WORD}) off |rejected (?:the|their|"
        r"his|her) )",
    ),
    _decision(
        "dropped",
        r" (?:we|we've|we have) dropped (?!off |by |in |out |a |an |my |our |him|her|them|everything|the (?:ball|kids|"
        r"phone|plate|glass|cake|keys|tray|subject))| (?:i|i've|i'm) dropp(?:ed|ing) (?:the (?:idea|plan|course|class|"
        r"project)|out of) ",
    ),
    _decision(
        "let's",
        rf" let's (?:go (?:with|for) (?!{_PEOPLE}|a (?:walk|run|swim|drink|coffee|beer|ride|drive|stroll|pizza|picnic|"
        r"bite)|it |dinner|lunch|broke)|use (?!the (?:calm|afternoon|time|chance|opportunity|moment|day|evening|"
        r"morning|weekend|occasion|break)|it |this |that )|stick (?:with|to) |settle (?:on|for) |"
        rf"keep (?!(?:{WORD}ing|in touch|an|it (?:short|up|simple)|this (?:short|between)|talking|quiet|calm|our|your|"
        rf"at|up|on|to)|(?:{WORD} ){{1,3}}(?:down|up|going|alive|quiet|short) )|drop (?:the|that|our) (?!subject)|"
        rf"call it (?!a (?:day|night)|quits|even)|make it (?:[^ ]*\d|{DAY}|two |three |four |the )|postpone |"
        rf"skip the |move (?:it|the {WORD}|this) (?:to|from|back)|(?:go|come|get) (?:down|up|"
        rf"back) to (?:{WORD} )?[^ ]*\d|say yes|say no)",
    ),
    _decision(
        "i'll we'll will",
        r"(?<! if)(?<! maybe)(?<! perhaps)(?<! think)(?<! or) (?:i'll|we'll|i will|we will) (?:(?:just|then|now|"
        rf"both) )?(?:go (?:with|for) (?!a (?:walk|run|swim|drink|coffee)|my |our |{_PEOPLE})|stick (?:with|to) |"
        rf"switch to |opt for |take {_TAKEN}(?:it |both |neither |the |that |this |your )|"
        rf"keep {_KEPT}(?!(?:{WORD} ){{1,4}}(?:warm|company|busy|safe|ready|going|short|mind|clean|apart|separate|"
        rf"open|coming) )(?:the|my|our|it|both|that|this) (?:{WORD} ){{0,3}}(?:$|, |as |for )|use (?:the |"
        rf"[^ ]+ (?:instead|for|from|as)|[^ ]+ [^ ]+ instead)|drop (?:the|that|our) (?!{WORD} off))",
    ),
    _decision(
        "i'm we're am are taking switching",
        rf" (?:i'm|we're|i am|we are) (?:now |both )?(?:going with (?!{_PEOPLE}|my |our |his |her |friends|a friend|"
        rf"(?:{WORD} ){{1,2}}to the )|sticking (?:with|to) |switching (?:to|from) |keeping (?=(?:the|it|that|this|"
        r"both|my|our|her|his) )(?!him|her|them|me|us|you|an |you|up|it (?:short|simple)|[^ ]+ing |"
        rf"(?:{WORD} ){{1,2}}(?:going|warm|busy|company|alive|short) |busy|quiet|warm|fit|track|score|at|in|on)|"
        rf"dropping (?!{_PEOPLE}|by|in|off|like|hints|the (?:kids|ball))|moving (?:it|that|this|them|the {WORD}|"
        rf"the {WORD} {WORD}|[^ ]+) to (?!{_PEOPLE})|moving to (?!the |a |my |tears|another|bed)|"
        rf"taking {_TAKEN}(?:the (?:second|first|third|other|job|offer|flat|role|room|{WORD} (?:one|option|menu|flat|"
        r"offer|job))|both|neither|it )|not (?:renewing|going ahead|buying (?!it )|using|changing|selling|moving|"
        r"taking the|doing (?:the|it|that))|staying (?:with|on) the (?!phone|sofa|couch|floor|beach|coast)|"
        r"going for the (?!next|day)|(?:doing|using|flying|meeting|having|going|"
        rf"coming) (?:{WORD} ){{1,4}}instead (?!of))|^ taking (?:{WORD} ){{1,6}}instead |"
        rf"^ switching (?:to (?:{WORD} ){{1,4}})?$",
    ),
    _decision(
        "won't not",
        r"(?:^| so| ,| and| but| :) (?:we|i) (?:won't|will not) (?:renew|touch|sell|support|build|buy|use|ship|accept|"
        r"sign|migrate|upgrade|offer|be (?:renewing|using|selling)) ",
    ),
    _decision(
        "keep take drop use skip go stick say",
        r"^ (?:(?:so|ok|okay|then|right|fine|agreed|decided|good|well|alright) (?:, )?){1,2}we (?:keep|take|drop|use|"
        rf"skip|go (?:with|for)|stick (?:with|to)|say (?:yes|no)) (?!{_PEOPLE}|[^ ]+ing |to bed|a (?:look|break|walk)|"
        r"turns)",
    ),
    _decision(
        "stays stay bleibt bleiben",
        rf"^ {_SO}(?!(?:she|he|they|who|who's|everyone|nobody|i|we|you|where|what|it|if|when|please|just|can|could|"
        rf"must|always|never|don't|to) ){WORD}(?: {WORD}){{0,4}}(?<! she)(?<! he) (?:stays|stay) (?:where (?:it|he|"
        r"she) (?:is|was)|as it (?:is|was)|as they are|like that|for now|in place|$|! |but |, but |: |till |until )|"
        rf"^ {_SO}it stays (?:$|for now|as it is|where it is|in |, but|like)| bleibt (?:drin|dabei|so |es dabei|"
        rf"(?:, )?wo (?:er|sie|es) |wie (?:er|sie|es) |bei )|^ {_SO}(?:wir|ich) bleiben? bei | bleibt es (?:$|, |"
        r"dabei)",
    ),
    _decision("it", rf"(?:^|[:,]) {_SO}(?:(?!{_NO_CHOICE} ){WORD} ){{1,4}}it is (?:then |, then )?(?:! )?$"),
    _decision(
        "then",
        r"^ (?:ok|okay|right|fine|all right|alright|good)(?: ,)? (?!(?:see|bye|talk|off|go|back|thanks|until|till|"
        r"night|again|what|why|never|and|but|so|let's|i|you|we|it|that|how|where|when|who|who's|what's|tell|let|wait|"
        rf"here|omens|news|luck|job|fine|good|great|perfect|enough|sorry) )(?:the )?(?:{WORD} ){{1,3}}then (?:! )?$|"
        r"^ (?:the )?(?!(?:until|till|since|back|by|well|now|and|but|so|just|before|only|even|from|what|if|ok|okay|"
        rf"right|good|fine|all|again|up) ){WORD} then , (?:i'll|we'll|please) |^ then (?:it's|it is) (?:{DAY}|"
        rf"the {WORD} (?:one|option|version|way|plan) )|^ then (?:we'll|i'll) (?:take|have) (?:it|the|two|three|four|"
        r"both|this|that) (?!.* if )",
    ),
    _decision(
        "go stay stick",
        rf"^ {_SO}go with (?:the )?(?!the flow|god |him|her|them|me|us|you|it$)(?:{WORD} ){{1,4}}(?:$|and|,|:|!)|"
        rf"^ {_SO}stay (?:on|with|at) (?:{WORD} ){{1,3}}for now |^ {_SO}stick (?:with|to) (?!{_PEOPLE}|it )",
    ),
    _decision(
        "now today",
        r"^(?!.* from now on (?:is |,? ?please |,? ?always |,? ?never )?(?:answer|write|reply|use|call|keep|speak|"
        r"respond|give|don't|do|add|put|tell|show|ask|no) )(?!.* (?:answer|reply|respond|write|"
        r"call) (?:me )?).* (?:we|we're|we'll|i'm|i'll|it's|i (?:carry|take|use|say|do|pay|eat|write|work|only|go|"
        rf"ring)|{DAY}[^ ]*(?: [^ ]+){{0,5}}) (?:[^ ]+ ){{0,16}}from now on (?!is )| from now on (?:we(?!'d| can)|"
        r"i'm (?!not sure|afraid)|i'll (?!never forget|worry|think)|every |each |all |no |only )",
    ),
    _decision("new", rf" new (?:date|plan|deadline|rule|time) (?:: |is (?={DAY}))"),
    _decision(
        "plan mind changed choice",
        r" (?:i've|we've|i have|we have) (?:finally )?made up (?:my|our) minds? | (?:the|my|our) choice (?:fell|"
        r"falls) on ",
    ),
    _decision(
        "no yes",
        rf" (?:we|i)(?:'ve| have)? (?:said|say) (?:yes|no) to |^ (?:and |but )?so no (?:{WORD} ){{1,3}}this (?:year|"
        r"summer|winter|month) ",
    ),
    # German, Spanish, French, Italian, Portuguese.
    _decision(
        "nehmen nehme nehm entschieden beschlossen einigen geeinigt abgemacht festgelegt entscheiden machen",
        r" (?:wir nehmen|ich (?:nehme|nehm) (?:den|die|das|doch|lieber)) (?!an |(?:[^ ]+ )?an $|mir |uns |mich |ab |"
        r"zu |teil |morgen |heute |gleich )| (?:nehm|nehme) ich (?:aber )?(?:nur|lieber|doch) | nehmen wir (?!an )|"
        r" (?:haben|habe|hat|hab) (?:(?:uns|mich|sich|wir|ich) )?(?:[^ ]+ ){0,5}(?:entschieden|geeinigt|beschlossen|"
        r"festgelegt) | wir einigen uns |^ (?:[^ ]+ )?abgemacht | machen wir es (?:$|, |so)|^ (?:[^ ]+ )?beschlossen :",
    ),
    _decision("fallt ab", r" der (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag) fallt weg "),
    _decision(
        "decidido decidimos decidi acordamos elegimos elegido quedamos quedamos elegi acordado",
        r" (?:hemos|he|ha|han) (?:decidido|elegido|acordado) |(?: |^)(?:decidimos|decidi|acordamos|elegimos) (?!si )|"
        r" nos quedamos con | quedamos en | vamos a usar ",
    ),
    _decision(
        "decide choisi garde part prend opte reste",
        r" (?:j'ai|on a|nous avons|avons) (?:finalement )?(?:decide|choisi|opte) |(?:^|,|alors|donc) on (?:garde|"
        r"part sur|prend (?:le|la|les|un|une|du) (?!train|bus|metro|voiture|avion|cafe|verre|temps|pain)[^ ]+|"
        r"reste sur|opte pour) | c'est decide ",
    ),
    _decision(
        "deciso scelto prendiamo teniamo decidimos escolhemos ficamos fica optamos optei decidiu-se",
        r" (?:abbiamo|ho|ha) (?:deciso|scelto) | (?:prendiamo|teniamo) (?:il|la|lo|i|le|quello|quella) |"
        r" (?:escolhemos|optamos por|optei por|ficamos com) |^ fica (?:o|a) [^ ]+ (?:! )?$",
    ),
)

NO_DECISION_CONTEXT = re.compile(
    r" (?:haven't|hasn't|hadn't|can't|cannot|couldn't|didn't|not|isn't|if|whether|unless|until|before|should|would|"
    r"could|might|to|must|never|once|you|who|nao|why we|if i|if we) (?:[^ ,]+ ){0,2}(?:decided?|chosen?|choose|"
    r"agreed?|settled?|picked?|let's)(?! (?:to|on|against|not) (?:[^ ]+ ){2})| why (?:we|i|they) | (?:haven't|not|"
    r"can't|until|if|when|have you) (?:[^ ]+ )?made? up | nothing is | if (?:i|we|you) (?:say|said|go|take|choose) |"
    r" (?:not|nicht) (?:[^ ]+ )?(?:decided|entschieden|clear yet) | noch nicht | (?:no|nao|non|pas|"
    r"pas encore) (?:[^ ,]+ )?(?:decid[^ ]*|decis[^ ]*|choisi|scelto|elegi[^ ]*) | (?:wondering|wondered) (?:if|"
    r"whether|for) | if i were you | did you hear | for example | e.g "
)
"""Context in which nothing is decided: open, conditional, or another person's choice."""
