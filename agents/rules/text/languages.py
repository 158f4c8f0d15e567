# ruff: noqa: RUF001 - Cyrillic letters are meant
"""Languages of texts by their stop words, stems (Snowball) and words of courtesy. Pure.

Words are folded by `agents.rules.text.tokenizer.fold`: they have no accents, so that a question typed without accents
finds a text with them. Stemmers that rely on an accent cut less then; `agents.rules.index.vocabulary` compensates.
Detection is linear in the words. Stop words are indexed like all others, and left out of a question unless nothing else
is left.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from py_rust_stemmers import SnowballStemmer

_WORDS: Mapping[str, str] = {
    "english": """
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
    """,
    "german": """
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
    """,
    "spanish": """
    a aca ahi ahora al algo alguien algun alguna algunas alguno algunos alla alli ante antes aquel aquella aquellas
    aquello aquellos aqui asi aun aunque cada casi como con conmigo contigo contra cual cuales cualquier cuando cuanta
    cuantas cuanto cuantos cuya cuyo dar de debe deben debia decir del dentro desde despues dice dicho dijo dime donde
    dos durante e el ella ellas ello ellos en entonces entre era eramos eran eras eres es esa esas ese eso esos esta
    estaba estaban estado estamos estan estar estara estas este esto estos estoy estuve estuvo fue fuera fueron fui
    gracias ha haber habia habian han has hasta hay haya he hemos hizo hoy iba ir la las le les lo los luego mas me mi
    mia mias mientras mio mios mis misma mismo mucha muchas mucho muchos muy nada nadie ni ningun ninguna ninguno no
    nos nosotras nosotros nuestra nuestras nuestro nuestros nunca o os otra otras otro otros para pero poco podia por
    porque puede pueden pues que quien quienes se sea ser sera si sido siempre sin sino sobre sois solo somos son soy
    su sus suya suyas suyo suyos tal tambien tampoco tan tanta tanto te tendra tenemos tener tengo tenia ti tiene
    tienen toda todas todavia todo todos tu tus tuve tuvo tuya tuyo un una unas uno unos usted ustedes va vamos van vez
    vosotros voy vuestra vuestro y ya yo
    """,
    "french": """
    a afin ai ainsi alors apres as au aucun aucune aujourd'hui auquel aussi autre autres aux avaient avais avait avant
    avec avez avoir avons ayant bien c c'est ca car ce ceci cela celle celles celui ces cet cette ceux chaque chez
    chose choses combien comme comment d dans de depuis des deux dit doit donc dont du elle elles en encore entre est
    et etaient etais etait etant ete etes etions etre eu eux faire fait fois font fut ici il ils j j'ai jamais je
    jusque l la laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais me meme memes mes mien
    moi moins mon n ne ni non nos notre nous on ont ou par parce pas pendant peu peut peuvent plus plusieurs pour
    pourquoi qu quand que quel quelle quelles quelque quelques quels qui quoi s sa sans se sera ses si sien soi soit
    sommes son sont sous suis sur t ta tandis te tel telle tes toi ton toujours tous tout toute toutes tres tu un une
    va vers voici voila vont vos votre vous y
    """,
    "portuguese": """
    a acerca agora ai ainda alem algo alguem algum alguma algumas alguns ali ante antes ao aos apenas apos aquela
    aquelas aquele aqueles aqui aquilo as assim ate bem cada com como contra cuja cujo da dai dao daquela daquele das
    de dela delas dele deles depois desde dessa desse desta deste deve devem devia disse disso disto do dos e ela elas
    ele eles em enquanto entao entre era eram es essa essas esse esses esta estamos estao estar estas estava estavam
    este estes esteve estive estou eu faz fazer fez foi fomos for foram fosse fui ha havia isso isto ja la lhe lhes
    logo mais mas me mesma mesmo meu meus minha minhas muita muitas muito muitos na nada nao naquela naquele nas nem
    nenhum nenhuma nessa nesse nesta neste ninguem no nos nossa nossas nosso nossos num numa nunca o onde os ou outra
    outras outro outros para pela pelas pelo pelos pode podem podia pois por porem porque pouca pouco pra quais qual
    qualquer quando quanta quantas quanto quantos quase que quem sao se seja sem sempre sendo ser sera seu seus sido
    sim so sob sobre somos sou sua suas tal talvez tambem tanta tanto tao te tem temos tenha tenho ter teu teve ti
    tinha tinham tive toda todas todo todos tu tua tudo um uma umas uns vai vamos vao voce voces vos vou
    """,
    "italian": """
    a abbia abbiamo ad adesso agli ai al alcun alcuna alcune alcuni alla alle allo allora altra altre altri altro anche
    ancora appena avere avete aveva avevamo avevano avevo avuto che chi ci ciascuno cio circa col come con contro cosa
    cosi cui da dagli dai dal dalla dalle dallo degli dei del della delle dello dentro di dopo dove dovere dunque e
    ecco ed era erano eravamo eri ero essere fa fare fatto fino fra fu fuori gia giu gli ha hai hanno ho i il in
    infatti insieme invece io la le lei lo loro lui ma mai me meno mentre mi mia mie miei mio molta molte molti molto
    ne nei nel nella nelle nello nemmeno nessun nessuna nessuno niente no noi non nostra nostre nostri nostro nulla o
    ogni ognuno oltre oppure ora ormai per perche pero piu poca poco poi possiamo posso possono prima proprio puo pure
    qual qualche qualcosa qualcuno quale quali quando quanta quante quanti quanto quasi quel quella quelle quelli
    quello questa queste questi questo qui quindi sara se sei sempre senza si sia siamo siete solo sono sopra sotto sta
    stai stata state stati stato stava stesso sto su sua subito sue sugli sui sul sulla sulle sullo suo suoi tanto te
    ti tra troppo tu tua tue tuo tuoi tutta tutte tutti tutto un una uno va verso vi via voi vostra vostre vostri
    vostro
    """,
    "dutch": """
    aan achter af al alle alleen allemaal alles als altijd ander andere anders ben bent bij bijna binnen boven daar
    daarna daarom dan dat de deed denk dertig deze die dit doe doen doet door dus een eens eerst eigenlijk elk elke en
    er ergens geen geweest gewoon ging had hadden heb hebben hebt heeft heel hem hen het hier hij hoe hoeveel hoewel
    hun ieder iedere iedereen iemand iets ik in is ja je jij jou jouw jullie kan kon konden kun kunnen kunt maar maken
    me mee meer meest men met mij mijn mocht moest moet moeten na naar nee niemand niet niets nog nooit nu of om omdat
    ons onze ook op over pas samen sinds slechts soms te tegen tenzij terwijl toch toen tot tussen uit uw van vanaf
    veel voor vooral waar waarin waarmee waarom wanneer waren was wat we weer wel welk welke werd werden wie wij wil
    wilde word worden wordt zal ze zelf zich zij zijn zo zoals zonder zou zouden zullen
    """,
    "swedish": """
    all alla allt alltid an anda andra annan annat at ater att av bara blev bli blir blivit borde bort da dar darfor de
    dem den denna deras dess dessa det detta dig din dina dit ditt dock du efter eftersom ej eller en er era ert ett
    fast fick for fore fram fran genom gick ha hade han hans har havt hela helt hemma hon honom hur i igen ihop in inga
    ingen inget innan inte ja jag ju kan kanske knappt kom kunde man manga med medan mej mellan men mer mest mig min
    mina mitt mot mycket nagon nagot nagra nar nej ni nog nu nya och ocksa om oss over pa redan sa sadan sade sedan sig
    sin sina sitt sjalv ska skall skulle som till tills trots tva under upp ut utan vad valdigt var vara varfor varit
    varje varst vart vem vems vi via vid vilka vilken vilket vill ville
    """,
    "danish": """
    af alle allerede alt altid anden andet andre at bare begge blev blive bliver bort da dag de dem den denne der deres
    derfor det dette dig din dine dit du efter eller en end endnu er et fik flere for fordi fra før først gennem gik
    gor gør ham han hans har havde have hele hen hende hendes her hos hun hvad hvem hver hvilke hvilken hvilket hvis
    hvor hvordan hvorfor hvornar i igen ikke ind ingen intet ja jeg jer jeres jo kan kom kun kunne lidt lige ma man
    mange med meget mellem men mens mere mest mig min mine mit mod nar ned nej nogen noget nogle nok nu og ogsa om op
    os over pa sa sadan samme sig sin sine sit skal skulle slet som til tit ud uden under var ved vi vil ville vor
    vores være været
    """,
    "norwegian": """
    alle allerede alt altid andre annen annet at av bare begge ble blei bli blir blitt bort bra da de deg dei dem den
    denne der deres derfor det dette din dine ditt du eg ei eller en enn enna er et ett etter fikk flere for fordi fra
    før først gikk gjennom gjorde gjør ha hadde ham han hans har hele helt hen henne hennes her hos hun hva hvem hver
    hvilke hvilken hvilket hvis hvor hvordan hvorfor i igjen ikke ikkje ingen ingenting inn ja jeg jo kan kanskje kom
    kun kunne litt ma man mange med meg meget mellom men mens mer mest min mine mitt mot mye na nar ned nei noe noen
    nok nylig og ogsa om opp oss over pa sa samme sann seg selv siden sin sine sitt skal skulle som til ut uten var
    vart ved veldig vi vil ville være vært
    """,
    "russian": """
    а без более больше будет будто буду будут бы был была были было быть в вам вами вас ваш ваша ваше ваши ведь весь
    вместо во вот впрочем все всегда всего всей всем всеми всему всех всю вся вы где да даже для до другая другие
    другого другое другой его ее ей ему если есть еще же за зачем здесь и из или им ими иногда их к каждый как какая
    какие каким каких какого какое какой какую когда кого ком кому конечно которая которого которое которой которую
    которые который которых кто куда ли либо лишь лучше меня мне много мной мог могла могли могу мое моего моей моем
    может можно мои моих мой моя мы на над надо нам нами нас наш наша наше нашего наши не него нее ней некоторые нельзя
    нем нему несколько нет нею ни нибудь никогда никто ним ними них ничего но ну о об однако он она они оно опять от
    откуда очень перед по под после потом потому почему почти при про просто против раз разве с сам сама сами само
    самый свое своего своей свои свой свою своя себе себя сейчас со собой совсем так такая такие такого такое такой там
    твое твои твой твоя те тебе тебя тем теперь тех то тобой тогда того тоже той только том тому тот тою туда тут ты у
    уж уже хотя чего чем чему через что чтоб чтобы эта эти этим этих это этого этой этом этому этот эту я
    """,
    "turkish": """
    acaba ama ancak arada artık asla az bana bazen bazı belki ben beni benim beri bile bir biraz biri birkac birsey biz
    bize bizi bizim boyle boylece bu buna bunda bundan bunlar bunları bunu bunun burada butun cok cunku da daha de defa
    degil diger diye dolayı dolayısıyla eger en evet fakat falan gibi gore ha hala hangi hani hatta hem henuz hep hepsi
    her herhangi herkes hic hicbir icin icinde ile ilgili ise iste kadar karsı kendi kendine kez ki kim kime kimin
    kimse madem mi mu mı nasıl ne neden nedir nerede nereye nicin niye o olan olarak oldu oldugu olmak olması olsa
    olsun olup olur ona once ondan onlar onlara onları onların onu onun orada oyle oysa pek ragmen sadece sana sanki
    sen seni senin siz size sizi sizin sonra soyle su suna sunu tabii tarafından tum uzere var ve veya ya yani yapan
    yaptı yaptık yaptım yerine yine yok yoksa zaman zaten
    """,
}

STOP_WORDS: Mapping[str, frozenset[str]] = {
    "": frozenset(),
    **{language: frozenset(words.split()) for language, words in _WORDS.items()},
}
"""By Snowball's name of the language; on a tie the first language wins."""


UNKNOWN_LANGUAGE = 0
"""Index of a text without a stop word of any language."""

LANGUAGES = tuple(STOP_WORDS)
"""Names by index. The lexical index stores the indexes: append new languages at the end."""

ENGLISH_INDEX = LANGUAGES.index("english")
"""The default for an unknown language."""


_LANGUAGES_BY_STOP_WORD = {
    word: tuple(index for index, words in enumerate(STOP_WORDS.values()) if word in words)
    for word in frozenset().union(*STOP_WORDS.values())
}


def detect_language(words: Iterable[str]) -> int:
    """Return the index of the language with the most stop words in `words`; `UNKNOWN_LANGUAGE` without any."""
    votes = [0] * len(LANGUAGES)
    for word in words:
        for index in languages_with_stop_word(word):
            votes[index] += 1
    return votes.index(max(votes))


def languages_with_stop_word(word: str) -> tuple[int, ...]:
    return _LANGUAGES_BY_STOP_WORD.get(word, ())


def stop_words_of(words: Sequence[str]) -> frozenset[str]:
    """Return the stop words of the language of these folded words; English if unknown."""
    return STOP_WORDS[LANGUAGES[detect_language(words) or ENGLISH_INDEX]]


def stems(words: Sequence[str], language: int) -> list[str]:
    """Return the stem of each word in the language with this index; English if unknown."""
    stemmed: list[str] = _stemmer(LANGUAGES[language or ENGLISH_INDEX]).stem_words(list(words))
    return stemmed


@cache
def _stemmer(language: str) -> SnowballStemmer:
    return SnowballStemmer(language)


COURTESY_WORDS: Mapping[str, str] = {
    "english": """
        absolutely admire agree amazing anytime appreciate appreciated appreciation awesome awful awesomely aw aww back
        bad beautiful believe best better bet big bit bless blessed brave brilliant bring brings bye came care careful
        caring catch cheer cheers come comes coming compliment concern cool congrats congratulations courage crazy cute
        definitely deserve difference different dream dreams easy effort encourage encouragement encouraging end enjoy
        enjoyed enthusiasm ever exactly excellent excited excitement exciting fab fabulous fantastic far feel feeling
        feelings fine forever forward friend friends friendship full fun future gift glad goal goals goes gonna good
        goodbye gorgeous grateful gratitude great greet greetings guess guys happen happened happening happy hang
        happiness hard hear heard heart hello help helped helpful helping helps hey hi hooray hope hopefully hoping hug
        hugs important impressed impressive incredible incredibly insane inspiration inspire inspired inspires inspiring
        interesting joy journey keep keeping kind kindness kinds know knowing known learn leave life lol long look
        looking lot lots love loved lovely loves loving luck lucky magic man matter mean meaning meaningful means mind
        miss moment moments motivate motivated motivates motivating motivation move moving need needed nice okay
        optimism optimistic overcome pal part passion passionate pass perfect perfectly people person place pleasant
        pleased pleasure point pleasing positive positivity possible power powerful precious pretty pride problem
        progress proud pumped push pushing quit reach ready real realize reason regard regards relief remember remind
        reminder reminds right rock sad safe see seeing seem share sharing shine show sincere smile sorry sort sound
        sounds special spirit spread start stay staying step stoked strength strong strive struggle stuff success
        successful super supportive support supported supporting supports sure surely surprise sweet talk talked
        talking terrible terrific thankful think thinking thought thoughts thrilled time times today together tomorrow
        tonight total totally touched tough treasure true truly trust try trying turn understand understanding
        unbelievable vibe vibes wait warm way welcome whenever whoa wish wishes wishing woah wonder wonderful wonders
        word words work working worries worry worth worthwhile wow yay yep yesterday yup
    """,
    "german": """
        alles angenehm ansporn beeindruckend beeindruckt begeistert begeisterung bemuhen besser bestens bewundern
        bewundere bitte bleib bleiben bravo danke danken dankbar dankbarkeit dankeschon denken drucke daumen echt
        ehrlich ermutigen ermutigung ermutigst erfolg fantastisch fein freude freuen freund freunde freundin freundlich
        freundlichkeit freust freut froh fuhle fuhlen gefallt gefuhl gefuhle gern gerne geschafft gluck glucklich
        gluckwunsch gratuliere grosse grossartig gruss grusse gut gute guten guter gutes hallo halte hart helfen herz
        herzlich herzlichen hilfe hilfst hilft hoffe hoffen hoffentlich horen hort inspirieren inspirierend inspiriert
        klar klasse klingt kraft lieb liebe lieben liebsten lob los machst macht machen melden meld menschen morgen
        motivation motivieren motivierst motiviert motivierend mut nett nie ok prima problem schade schaffst schatze
        schlimm schon schone schonen sehen sorgen sorge spass spitze stark stolz super tag toll tolle traum traume
        traurig tschuss unglaublich unterstutzen unterstutzt unterstutzung verstehe vertrauen viel vielen vielleicht
        warm wert willkommen wissen wirklich worte wort wow wunderbar wunsche wunschen zeit zusammen
    """,
    "spanish": """
        abrazo abrazos adelante adios agradable agradecer agradecido agradecida agradezco alegra alegre alegria amable
        amabilidad amiga amigas amigo amigos amistad amor animo animos anima apoyar apoyas apoyo apreciar aprecio ayuda
        ayudar ayudas bello bendiciones bien bienvenido bravo bueno buena buenas buenos bonito carino chao claro
        corazon cosa cosas creer cuidate cuidado dia dias dificil encanta encantado encantador esfuerzo esperanza
        espero estupendo excelente exito fantastico felicidad felicidades felicitaciones feliz fuerte fuerza fuerzas
        genial gracias gran grande grandes gusta gusto hablar hablamos hola igualmente importa importante increible
        inspira inspiracion inspirador lindo logro logras luego maravilla maravilloso mejor motiva motivacion
        motivado motivar mucho muchas mundo nada nos nunca optimismo orgullo orgulloso orgullosa palabras perfecto
        positivo precioso preocupes problema puedes querido quiero rendir saber sabes saludo saludos seguir sigue
        siento sientes siempre significa suena suerte sueno suenos tarde tiempo triste valor ver verdad vida
    """,
    "french": """
        adieu adorable aide aider aides aimable aime ami amie amis amities amour apprecie apprecier attention avancer
        beau belle bien bienvenue bisous bon bonheur bonjour bonne bonnes bonsoir bravo chance chapeau cher chere
        chouette coeur confiance content contente continue continuer coucou courage croire desole dire effort encourage
        encouragement encouragements encourager enchante ensemble espere espoir excellent fabuleux felicitations fete
        fier fiere force formidable fort genial gentil gentille gentillesse grace grand grande gratitude heureuse
        heureux important impressionnant incroyable inquiete inspirant inspiration inspire inspirer joie jour journee
        joli jolie longtemps magnifique merci mercis merveilleux mieux monde mots motivant motivation motive motiver
        optimisme parfait parler paroles penser plaisir positif probleme reconnaissant reconnaissante reussir reussite
        reve reves revoir rien salut savoir sens sentir soin soutenir soutien soutiens souhaite super sur sympa temps
        toujours triste vie voir vrai vraiment
    """,
}
"""Folded words of courtesy, feeling and encouragement by language, ignored when clustering.

Greetings, thanks, praise and cheers are near each other by vectors and by words, but carry no information. Light verbs
are included, since every language builds courtesies from them ("let me know", "means a lot", "long time no see"). Words
that name things that people take notes of are left out.
"""


@cache
def courtesy_stems() -> frozenset[str]:
    """Return the stems of all courtesy words, by their own language and by English, the default of the stemmer."""
    return frozenset(
        stem
        for language, words in COURTESY_WORDS.items()
        for index in {LANGUAGES.index(language), ENGLISH_INDEX}
        for stem in stems(words.split(), index)
    )
