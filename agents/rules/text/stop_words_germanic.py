"""Stop words of English, German, Dutch, Swedish, Danish and Norwegian.

Written for this project and folded by `agents.rules.text.tokenizer.fold`.
"""

ENGLISH_STOP_WORDS = """
    a about above after again against ago all also am an and any anybody anyone anything are aren't as at away be
    became because been before being below between both but by came can can't cannot could couldn't did didn't do does
    doesn't doing don't done down during each either else ever every everybody everyone everything few for from further
    gave get gets getting give given go goes going gone got had hadn't has hasn't have haven't having he he'd he'll
    he's her here here's hers herself him himself his how how's however i i'd i'll i'm i've if in into is isn't it it'd
    it'll it's its itself just let let's like made make makes many maybe me might mine more most much must my myself no
    nobody nor not nothing now of off oh ok okay on once one only onto or other others our ours ourselves out over own
    please quite rather really said same say says shall shan't she she'd she'll she's should shouldn't since so some
    somebody someone something still such take tell than thank thanks that that'd that's the their theirs them
    themselves then there there's these they they'd they'll they're they've thing things this those though through to
    too took toward towards under until up upon us use used using very want wants was wasn't we we'd we'll we're we've
    well went were weren't what what's whatever when when's where where's whether which while who who's whom whose why
    why's will with within without won't would wouldn't yeah yes yet you you'd you'll you're you've your yours yourself
    yourselves
"""

GERMAN_STOP_WORDS = """
    ab aber alle allem allen aller alles als also am an ander andere anderen anderer anderes auch auf aus bei beide
    beim bekam bekommen bin bis bist da dabei dadurch dafur damals damit danach daran darauf daraus darf darin daruber
    darum das dass davon dazu dein deine deinem deinen deiner dem den denen denn der deren des deshalb dessen dich die
    dies diese diesem diesen dieser dieses dir doch dort du durch durfen eben ein eine einem einen einer eines einmal
    er erst es etwa etwas euch euer eure fur ganz gar gegen genau genug gerade gern gewesen geworden gibt ging hab habe
    haben habt halt hat hatt hatte hatten hattest her hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im
    immer in ins irgend ist ja jede jedem jeden jeder jedes jemand jetzt kann kannst kein keine keinem keinen keiner
    konnen konnte konnten lang lange lassen mal man mehr mein meine meinem meinen meiner mich mir mit mochte muss
    mussen musste mussten nach nachdem nein nicht nichts nie niemand noch nun nur ob oder ohne schon sehr sein seine
    seinem seinen seiner seit seitdem selbst sich sie sind so sogar solche soll sollen sollte sondern sonst statt uber
    um und uns unser unsere unserem unseren unserer unter viel viele vom von vor wann war waren warst warum was weder
    weg wegen weil weiter welche welchem welchen welcher welches wem wen wenig wenn wer werde werden wessen wie wieder
    wieso wieviel will wir wird wirst wo wobei woher wohin wollte wollten womit woran worauf woraus worin worum wurde
    wurden zu zum zur zwar zwischen
"""

DUTCH_STOP_WORDS = """
    aan achter af al alle alleen allemaal alles als altijd ander andere anders ben bent bij bijna binnen boven daar
    daarna daarom dan dat de deed denk dertig deze die dit doe doen doet door dus een eens eerst eigenlijk elk elke en
    er ergens geen geweest gewoon ging had hadden heb hebben hebt heeft heel hem hen het hier hij hoe hoeveel hoewel
    hun ieder iedere iedereen iemand iets ik in is ja je jij jou jouw jullie kan kon konden kun kunnen kunt maar maken
    me mee meer meest men met mij mijn mocht moest moet moeten na naar nee niemand niet niets nog nooit nu of om omdat
    ons onze ook op over pas samen sinds slechts soms te tegen tenzij terwijl toch toen tot tussen uit uw van vanaf
    veel voor vooral waar waarin waarmee waarom wanneer waren was wat we weer wel welk welke werd werden wie wij wil
    wilde word worden wordt zal ze zelf zich zij zijn zo zoals zonder zou zouden zullen
"""

SWEDISH_STOP_WORDS = """
    all alla allt alltid an anda andra annan annat at ater att av bara blev bli blir blivit borde bort da dar darfor de
    dem den denna deras dess dessa det detta dig din dina dit ditt dock du efter eftersom ej eller en er era ert ett
    fast fick for fore fram fran genom gick ha hade han hans har havt hela helt hemma hon honom hur i igen ihop in inga
    ingen inget innan inte ja jag ju kan kanske knappt kom kunde man manga med medan mej mellan men mer mest mig min
    mina mitt mot mycket nagon nagot nagra nar nej ni nog nu nya och ocksa om oss over pa redan sa sadan sade sedan sig
    sin sina sitt sjalv ska skall skulle som till tills trots tva under upp ut utan vad valdigt var vara varfor varit
    varje varst vart vem vems vi via vid vilka vilken vilket vill ville
"""

DANISH_STOP_WORDS = """
    af alle allerede alt altid anden andet andre at bare begge blev blive bliver bort da dag de dem den denne der deres
    derfor det dette dig din dine dit du efter eller en end endnu er et fik flere for fordi fra før først gennem gik
    gor gør ham han hans har havde have hele hen hende hendes her hos hun hvad hvem hver hvilke hvilken hvilket hvis
    hvor hvordan hvorfor hvornar i igen ikke ind ingen intet ja jeg jer jeres jo kan kom kun kunne lidt lige ma man
    mange med meget mellem men mens mere mest mig min mine mit mod nar ned nej nogen noget nogle nok nu og ogsa om op
    os over pa sa sadan samme sig sin sine sit skal skulle slet som til tit ud uden under var ved vi vil ville vor
    vores være været
"""

NORWEGIAN_STOP_WORDS = """
    alle allerede alt altid andre annen annet at av bare begge ble blei bli blir blitt bort bra da de deg dei dem den
    denne der deres derfor det dette din dine ditt du eg ei eller en enn enna er et ett etter fikk flere for fordi fra
    før først gikk gjennom gjorde gjør ha hadde ham han hans har hele helt hen henne hennes her hos hun hva hvem hver
    hvilke hvilken hvilket hvis hvor hvordan hvorfor i igjen ikke ikkje ingen ingenting inn ja jeg jo kan kanskje kom
    kun kunne litt ma man mange med meg meget mellom men mens mer mest min mine mitt mot mye na nar ned nei noe noen
    nok nylig og ogsa om opp oss over pa sa samme sann seg selv siden sin sine sitt skal skulle som til ut uten var
    vart ved veldig vi vil ville være vært
"""
