"""Known names of people, cities, countries and companies, folded. Pure.

A capital letter proves little: it begins every sentence, and every noun in German. A missing name costs a missed
contradiction; a noun taken for a name hides something true. So words that are mostly something else (`Will`, `Hope`,
`Nice`) and parts of places (`Brooklyn`, `Shoreditch`) are left out.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FIRST_NAMES = _words(
    "ana anna anne annie ann anja anita andrea andreas andre andrew andy anton antonia antonio angela angelika agnes "
    "alan albert alberto alejandra alejandro aleksandra alessandra alessandro alessia alex alexander alexandra "
    "alexandre alexandros alexis alfred ali alice alicia alina aline amanda amelie amir amy anders angelo antoine "
    "arnaud arthur arturo astrid aylin ayse barbara bastian beatrice beatriz ben benedikt benjamin bernd bernhard "
    "bettina bianca bill birgit bob boris brian bruno camila camille carina carla carlo carlos carmen carol carolin "
    "carolina caroline cecile celine charles charlie charlotte chiara chloe chris christa christian christiane "
    "christina christine christoph christophe christopher claire clara claudia claudio clemens cristina cristiano "
    "daniel daniela daniele danielle david deborah denis dennis detlef diana diego dieter dimitri dirk dmitri dominik "
    "donald doris duarte ed eduardo edward elena elias elif elisa elisabeth elizabeth elke ella ellen emil emilia "
    "emilie emily emma emre enrico enrique eric erica erik erika ernst estelle esther eva evelyn fabian fabio fatima "
    "fatma federica federico felipe felix fernanda fernando filipa filipe fiona florian francesca francesco francisca "
    "francisco francois francoise frank franz fred frederic frederik friedrich fritz gabi gabriel gabriela gabriele "
    "gary georg george gerd gerhard gerard giacomo gilles giorgio giovanni giulia giulio giuseppe gonzalo greg gregor "
    "greta guido guillaume gustavo hamza hanna hannah hannes hans harald harry hasan heidi heike heiko heinrich heinz "
    "helen helena helene helga helmut henri henrik henrique henry herbert hugo hussein ian ibrahim ignacio ines inga "
    "inge ingo ingrid irene iris isabel isabella isabelle ivan jack jacob jacques jakob james jan jana jane janet "
    "janine jasmin javier jean jeanne jeff jens jennifer jenny jeremy jessica jim jo joachim joan joana joao joaquin "
    "jochen joe joel johan johanna johannes john jon jonas jonathan jorg jorge jose josef joseph josefine josh juan "
    "judith julia julian juliane julie julien juliette jurgen justin karen karim karin karl karla karsten kate "
    "katharina kathrin katie katja katrin kevin kim klaus klara kristin kurt lara lars laura laurent lea lena leo "
    "leon leonie leonardo leonor leticia liam lisa linda lorena lorenzo lotte louis louise luca lucas lucia lucie "
    "luciano lucy ludwig luis luisa luise lukas luke lutz magdalena maike malte manfred manon manuel manuela marc "
    "marcel marcela marco marcos marcus margaret margarida maria mariana marie marina mario marion mark marko markus "
    "marlene marta martha martin martina mary mateo mathias mathieu mathilde matt matteo matthew matthias matthieu "
    "max maximilian maya mehmet meike mel melanie melissa mia michael michaela michel michele michelle miguel mika "
    "mike mila mohamed mohammed mona monica monika monique moritz muhammad murat mustafa nadia nadine natalia natalie "
    "nathalie nick nicola nicolas nicole niklas niko nikolaus nils nina noah nora norbert nuno oliver olivia olivier "
    "olga omar oscar oskar otto pablo paola paolo patricia patricio patrick patrizia paul paula paulo pavel pedro "
    "peter petra philip philipp philippe pia pierre pietro priya rachel rafael raj ralf ralph ramon raphael raquel "
    "raul rebecca regina reinhard renate rene ricardo riccardo richard rita robert roberta roberto robin rodrigo "
    "roger roland rolf roman ronald ruben rudolf rui rupert ruth ryan sabine sabrina sally salvatore sam samira "
    "samuel sandra sara sarah sascha sean sebastian sergio sibylle silke silvia simon simona simone sofia sofie sonia "
    "sonja sophia sophie stefan stefanie stefano steffen stella stephan stephanie stephen steve steven sue susan "
    "susana susanne susi svenja sven sylvia sylvie tamara tania tanja tanya tatiana ted teresa theo theresa thomas "
    "thorsten tiago till tim timo tina tobias tom tomas tommy toni tony torsten udo ulf uli ulrich ulrike ursula ute "
    "uwe valentin valentina valeria valerie vanessa vera veronica veronika verena vicente victor victoria viktor "
    "vincent vincenzo virginie vivian volker walter werner wilhelm william wolfgang xavier yann yannick yasmin yuki "
    "yusuf yvonne zoe"
)
KIN_NAMES = _words(
    "mum mom mummy mommy mama mamma maman mamie mamy dad daddy papa papi papy grandma grandpa granny gran grandad oma "
    "opa mutti vati nonna nonno abuela abuelo mae pai avo avoo mutter vater"
)
"""Words that name another person for every speaker."""

COUNTRIES = _words(
    "england scotland wales ireland germany austria switzerland france belgium netherlands luxembourg spain portugal "
    "italy greece turkey poland czechia hungary romania bulgaria croatia serbia slovenia slovakia ukraine russia "
    "sweden norway denmark finland iceland estonia latvia lithuania canada mexico brazil argentina chile peru "
    "colombia china japan india korea australia egypt morocco kenya nigeria israel deutschland osterreich schweiz "
    "frankreich belgien niederlande spanien italien griechenland turkei polen ungarn schweden norwegen danemark "
    "finnland alemania suiza francia belgica espana italia grecia portogallo spagna germania svizzera alemanha suica "
    "franca espanha allemagne suisse espagne italie grece suede norvege irlande brasil brasile"
)
"""Countries none of which lies in another one; no continents."""

CITIES = _words(
    "london manchester birmingham leeds york liverpool bristol edinburgh glasgow cardiff belfast dublin cork oxford "
    "cambridge berlin hamburg munich munchen cologne koln frankfurt stuttgart dresden leipzig hanover hannover bremen "
    "bonn dusseldorf nuremberg nurnberg vienna wien graz salzburg zurich geneva bern basel lausanne paris lyon "
    "marseille nantes rennes bordeaux lille toulouse strasbourg montpellier brussels antwerp ghent amsterdam "
    "rotterdam utrecht eindhoven madrid barcelona valencia sevilla seville bilbao vigo malaga zaragoza granada lisbon "
    "lisboa porto coimbra braga faro rome roma milan milano turin torino naples napoli florence firenze bologna "
    "venice venezia genoa genova parma palermo athens thessaloniki istanbul ankara warsaw krakow gdansk prague brno "
    "bratislava budapest bucharest sofia belgrade zagreb ljubljana kyiv lviv moscow oslo bergen trondheim stockholm "
    "gothenburg malmo copenhagen aarhus helsinki tampere reykjavik tallinn riga vilnius boston chicago seattle austin "
    "dallas houston denver portland atlanta miami philadelphia detroit toronto montreal vancouver ottawa calgary "
    "bogota lima santiago montevideo tokyo osaka kyoto seoul beijing shanghai shenzhen singapore bangkok hanoi "
    "jakarta manila delhi mumbai bangalore bengaluru chennai hyderabad kolkata karachi lahore dubai doha cairo "
    "casablanca tunis nairobi lagos accra johannesburg sydney melbourne brisbane perth adelaide auckland wellington "
    "berkeley kiel lubeck rostock mainz mannheim karlsruhe freiburg augsburg heidelberg wurzburg regensburg ulm "
    "aachen munster bielefeld dortmund bochum duisburg essen wuppertal kassel gottingen braunschweig magdeburg halle "
    "erfurt jena weimar chemnitz potsdam schwerin oldenburg osnabruck konstanz trier koblenz saarbrucken darmstadt "
    "wiesbaden linz innsbruck klagenfurt genf luzern winterthur geneve bale nottingham sheffield newcastle leicester "
    "norwich brighton portsmouth plymouth exeter swansea aberdeen dundee inverness galway limerick oakland sacramento "
    "phoenix tucson minneapolis milwaukee cleveland pittsburgh baltimore nashville memphis tampa orlando charlotte "
    "raleigh honolulu edmonton winnipeg halifax grenoble dijon reims angers brest rouen metz nancy nimes avignon "
    "annecy toulon liege gent groningen maastricht cordoba alicante murcia valladolid salamanca pamplona oviedo gijon "
    "santander cadiz tarragona girona verona padova padua trieste bari catania pisa siena modena bergamo brescia "
    "perugia rimini cagliari lecce aveiro setubal evora funchal guimaraes patras izmir lodz poznan wroclaw katowice "
    "pilsen debrecen cluj timisoara plovdiv varna skopje sarajevo tirana odessa minsk turku espoo uppsala stavanger "
    "odense aalborg tartu kaunas curitiba recife fortaleza brasilia manaus quito caracas medellin guadalajara "
    "monterrey havana kobe nagoya fukuoka busan taipei guangzhou hangzhou pune jaipur colombo dhaka kathmandu tehran "
    "baghdad amman beirut jerusalem haifa riyadh algiers dakar kampala harare lusaka canberra hobart berlino berlim "
    "londra londres parigi viena vienne amburgo hamburgo hambourg francoforte francfort munique mailand rom venedig "
    "neapel florenz genua lissabon lisbonne lisbona barcelone barcellona sevilha siviglia milao atenas athen atene "
    "praga prag varsovia warschau varsavia varsovie bukarest bucarest moskau mosca moscou brussel bruxelles bruselas "
    "bruxelas anvers zurigo zurique ginebra genebra ginevra basilea berna copenaghen copenhague kopenhagen stoccolma "
    "estocolmo nizza niza marsella marsiglia lione burdeos tokio pekin peking pechino pequim seul kairo edimburgo "
    "dublino oporto krakau danzig breslau cracovia cracovie"
)
TWO_WORD_CITIES = frozenset(
    {"new york", "los angeles", "san francisco", "san diego", "hong kong", "tel aviv", "buenos aires", "cape town"}
    | {
        "sao paulo",
        "nueva york",
        "nova iorque",
        "nova york",
        "mexico city",
        "the hague",
        "las vegas",
        "new orleans",
        "den haag",
        "new delhi",
        "kuala lumpur",
    }
)
COMPANIES = _words(
    "acme siemens bosch sap bmw vw volkswagen daimler mercedes audi porsche opel ford lufthansa telekom basf allianz "
    "continental thyssenkrupp henkel adidas puma zalando infineon bertelsmann trumpf miele kuka zeiss festo aldi lidl "
    "rewe edeka dhl tui nokia ericsson google alphabet amazon microsoft apple facebook netflix tesla rivian intel amd "
    "nvidia ibm oracle salesforce adobe cisco dell hp samsung sony toyota honda nissan hyundai renault peugeot "
    "citroen airbus boeing thales total totalenergies orange carrefour danone michelin fiat ferrari olivetti pirelli "
    "eni enel lamborghini barilla telefonica indra santander bbva inditex zara repsol iberia seat mercadona galp "
    "vodafone edp nos altice sonae efacec unilever shell philips asml ing spotify ikea volvo saab maersk novo nestle "
    "novartis roche ubs swatch abb accenture deloitte kpmg pwc ey mckinsey capgemini atos pfizer merck sanofi bayer "
    "biontech uber airbnb stripe paypal twitter linkedin github gitlab hetzner"
)
COMPANY_FORMS = _words("gmbh ag se kg ohg ug inc ltd llc corp plc spa srl sarl sas lda")
