"""Patterns of statements that take back a rule. Pure: data."""

from functools import partial

from agents.rules.cues.label_patterns import WORD, LabelPattern, label_pattern

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
