"""Words of courtesy, feeling and encouragement, ignored when clustering. Pure.

Greetings, thanks, praise and cheers are near each other by vectors and by words, but carry no information. Light verbs
are included, since every language builds courtesies from them ("let me know", "keep going", "means a lot", "long time
no see"). Words that name things that people take notes of are left out.
"""

from collections.abc import Mapping
from functools import cache

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES
from agents.rules.text.stemming import stems

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
"""Folded words by language, for the languages in which `agents.rules.cues` detects a courtesy."""


@cache
def courtesy_stems() -> frozenset[str]:
    """Return the stems of all courtesy words, by their own language and by English, the default of the stemmer."""
    return frozenset(
        stem
        for language, words in COURTESY_WORDS.items()
        for index in {LANGUAGES.index(language), ENGLISH_INDEX}
        for stem in stems(words.split(), index)
    )
