"""Words that carry grammar rather than meaning, by language, written for this project.

They are indexed like all others, and left out of a question unless nothing else is left. All are folded as
`agents.rules.words` folds: lower case, no accents, `'` as the apostrophe.
"""

from collections.abc import Sequence


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


ENGLISH = _listed(
    """
    a about above after again against ago all also am an and any anybody anyone anything are aren't as at away be
    became because been before being below between both but by came can can't cannot could couldn't did didn't do
    does doesn't doing don't done down during each either else ever every everybody everyone everything few for from
    further gave get gets getting give given go goes going gone got had hadn't has hasn't have haven't having he he'd
    he'll he's her here here's hers herself him himself his how how's however i i'd i'll i'm i've if in into is isn't
    it it'd it'll it's its itself just let let's like made make makes many maybe me might mine more most much must
    my myself no nobody nor not nothing now of off oh ok okay on once one only onto or other others our ours ourselves
    out over own please quite rather really said same say says shall shan't she she'd she'll she's should shouldn't
    since so some somebody someone something still such take tell than thank thanks that that'd that's the their
    theirs them themselves then there there's these they they'd they'll they're they've thing things this those
    though through to too took toward towards under until up upon us use used using very want wants was wasn't we
    we'd we'll we're we've well went were weren't what what's whatever when when's where where's whether which while
    who who's whom whose why why's will with within without won't would wouldn't yeah yes yet you you'd you'll you're
    you've your yours yourself yourselves
    """
)

GERMAN = _listed(
    """
    ab aber alle allem allen aller alles als also am an ander andere anderen anderer anderes auch auf aus bei beide
    beim bekam bekommen bin bis bist da dabei dadurch dafur damals damit danach daran darauf daraus darf darin daruber
    darum das dass davon dazu dein deine deinem deinen deiner dem den denen denn der deren des deshalb dessen dich die
    dies diese diesem diesen dieser dieses dir doch dort du durch durfen eben ein eine einem einen einer eines einmal
    er erst es etwa etwas euch euer eure fur ganz gar gegen genau genug gerade gern gewesen geworden gibt ging haben
    habe habt hab halt hat hatte hatten hattest hatt her hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer
    im immer in ins irgend ist ja jede jedem jeden jeder jedes jemand jetzt kann kannst kein keine keinem keinen
    keiner konnen konnte konnten lang lange lassen mal man mehr mein meine meinem meinen meiner mich mir mit mochte
    muss mussen musste mussten nach nachdem nein nicht nichts nie niemand noch nun nur ob oder ohne schon sehr sein
    seine seinem seinen seiner seit seitdem selbst sich sie sind so sogar solche soll sollen sollte sondern sonst
    statt uber um und uns unser unsere unserem unseren unserer unter viel viele vom von vor wann war waren warst
    warum was weder weg wegen weil weiter welche welchem welchen welcher welches wem wen wenig wenn wer werde werden
    wessen wie wieder wieso wieviel will wir wird wirst wo wobei woher wohin womit worauf woran woraus worum worin
    wurde wurden wollte wollten zu zum zur zwar zwischen
    """
)

SPANISH = _listed(
    """
    a aca ahi ahora al algo alguien algun alguna algunas alguno algunos alla alli ante antes aquel aquella aquellas
    aquello aquellos aqui asi aun aunque cada casi como con conmigo contigo contra cual cuales cualquier cuando cuanta
    cuantas cuanto cuantos cuya cuyo dar de debe deben debia decir del dentro desde despues dice dicho dijo dime donde
    dos durante e el ella ellas ello ellos en entonces entre era eramos eran eras eres es esa esas ese eso esos esta
    estaba estaban estado estamos estan estar estara estas este esto estos estoy estuve estuvo fue fuera fueron fui
    gracias ha haber habia habian han has hasta hay haya he hemos hizo hoy iba ir la las le les lo los luego mas me mi
    mia mias mientras mio mios mis mismo misma mucha muchas mucho muchos muy nada nadie ni ningun ninguna ninguno no
    nos nosotras nosotros nuestra nuestras nuestro nuestros nunca o os otra otras otro otros para pero poco por porque
    pues puede pueden podia que quien quienes se sea ser sera si sido siempre sin sino sobre sois solo somos son soy
    su sus suya suyas suyo suyos tal tambien tampoco tan tanta tanto te tendra tenemos tener tengo tenia ti tiene
    tienen toda todas todavia todo todos tu tus tuve tuvo tuya tuyo un una unas uno unos usted ustedes va vamos van
    vez vosotros voy vuestra vuestro y ya yo
    """
)

FRENCH = _listed(
    """
    a afin ai ainsi alors apres as au aucun aucune aujourd'hui auquel aussi autre autres aux avaient avais avait avant
    avec avez avoir avons ayant bien c c'est ca car ce ceci cela celle celles celui ces cet cette ceux chaque chez
    chose choses combien comme comment d dans de depuis des deux dit doit donc dont du elle elles en encore entre est
    et etaient etais etait etant ete etes etions etre eu eux fait faire fois font fut ici il ils j j'ai jamais je
    jusque l la laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais me meme memes mes mien
    moi moins mon n ne ni non nos notre nous on ont ou par parce pas pendant peu peut peuvent plus plusieurs pour
    pourquoi qu quand que quel quelle quelles quelque quelques quels qui quoi s sa sans se sera ses si sien soi soit
    sommes son sont sous suis sur t ta tandis te tel telle tes toi ton toujours tous tout toute toutes tres tu un une
    va vers voici voila vont vos votre vous y
    """
)

LANGUAGES: Sequence[frozenset[str]] = (ENGLISH, GERMAN, SPANISH, FRENCH)
"""All lists, the one that wins a tie first."""


def stop_words_of(words: Sequence[str]) -> frozenset[str]:
    """The list of the language that most of these folded words point to; English when nothing does."""
    return max(LANGUAGES, key=lambda language: sum(word in language for word in words))
