"""Stop words of Spanish, French, Italian and Portuguese.

Written for this project and folded by `agents.rules.text.tokenizer.fold`.
"""

SPANISH_STOP_WORDS = """
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
"""

FRENCH_STOP_WORDS = """
    a afin ai ainsi alors apres as au aucun aucune aujourd'hui auquel aussi autre autres aux avaient avais avait avant
    avec avez avoir avons ayant bien c c'est ca car ce ceci cela celle celles celui ces cet cette ceux chaque chez
    chose choses combien comme comment d dans de depuis des deux dit doit donc dont du elle elles en encore entre est
    et etaient etais etait etant ete etes etions etre eu eux faire fait fois font fut ici il ils j j'ai jamais je
    jusque l la laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais me meme memes mes mien
    moi moins mon n ne ni non nos notre nous on ont ou par parce pas pendant peu peut peuvent plus plusieurs pour
    pourquoi qu quand que quel quelle quelles quelque quelques quels qui quoi s sa sans se sera ses si sien soi soit
    sommes son sont sous suis sur t ta tandis te tel telle tes toi ton toujours tous tout toute toutes tres tu un une
    va vers voici voila vont vos votre vous y
"""

ITALIAN_STOP_WORDS = """
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
"""

PORTUGUESE_STOP_WORDS = """
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
"""
