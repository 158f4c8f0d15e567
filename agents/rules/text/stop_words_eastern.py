# ruff: noqa: RUF001 - these are letters of other alphabets
"""Stop words of Russian and Turkish, written for this project and folded by `agents.rules.text.tokenizer.fold`."""

RUSSIAN_STOP_WORDS = """
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
"""

TURKISH_STOP_WORDS = """
    acaba ama ancak arada artık asla az bana bazen bazı belki ben beni benim beri bile bir biraz biri birkac birsey biz
    bize bizi bizim boyle boylece bu buna bunda bundan bunlar bunları bunu bunun burada butun cok cunku da daha de defa
    degil diger diye dolayı dolayısıyla eger en evet fakat falan gibi gore ha hala hangi hani hatta hem henuz hep hepsi
    her herhangi herkes hic hicbir icin icinde ile ilgili ise iste kadar karsı kendi kendine kez ki kim kime kimin
    kimse madem mi mu mı nasıl ne neden nedir nerede nereye nicin niye o olan olarak oldu oldugu olmak olması olsa
    olsun olup olur ona once ondan onlar onlara onları onların onu onun orada oyle oysa pek ragmen sadece sana sanki
    sen seni senin siz size sizi sizin sonra soyle su suna sunu tabii tarafından tum uzere var ve veya ya yani yapan
    yaptı yaptık yaptım yerine yine yok yoksa zaman zaten
"""
