"""Synthetic turns, deterministic by seed, with a vocabulary that grows like that of real texts."""

import random
from collections.abc import Callable

STEMS = (  # noqa: SIM905 - words are read more easily as words
    "account airport answer apple autumn balance battery beach bicycle bill birthday board boat book border bottle "
    "branch bread bridge brother budget bug build camera candle carpet castle chapter cheese choir church cinema city "
    "client cloud coach coat coffee column concert contract cookie copy cousin crash cup customer dance deadline debt "
    "decision deploy dessert diary dinner doctor door draft drawer dream driver drum editor elevator engine error "
    "essay evening exam factory family farm fence festival fever field film fire flag flight flower forest fork "
    "friend fruit garage garden gate gift glass glove goal grammar guitar hammer harbour hat hike holiday hospital "
    "hotel house idea index island jacket job journey kettle key kitchen knee ladder lake lamp language laptop lawyer "
    "lecture lemon letter library lunch machine map market meadow meal medicine meeting menu merge message mirror "
    "model money monitor morning motor mountain museum neighbour network night noise note novel number nurse ocean "
    "office onion orchestra oven packet painting paper parcel park password patch path payment pencil phone photo "
    "piano picnic pillow pipeline plane plant plate poem policy pool potato present price printer problem project "
    "puzzle query question queue rabbit radio rain recipe record release rent report request restaurant rice river "
    "road roof room rope rule salary salad sauce schedule school screen script season secret server shelf ship shirt "
    "shoe shop signal sister skill sleep snow soap sofa song soup spoon spring stage stairs station stone storm story "
    "street student subject sugar summer sun supper surgery table tax teacher team tent test theatre ticket timer "
    "token tooth tower town toy train travel tree trial trip truck tunnel umbrella uncle upgrade vacation valley "
    "vegetable version village violin visit voice wallet water weather wedding weekend wheel window winter word "
    "worker yard"
).split()
ENDINGS = ("", "", "", "", "s", "s")
FILLERS = (  # noqa: SIM905 - words are read more easily as words
    "the a my our this that we you they it and but or so because when with without about before after near for to in "
    "on is was are were will can should must could not never always often again today yesterday tomorrow really still"
).split()
SYLLABLES = (  # noqa: SIM905 - as above
    "ba be bo da de di do fa fe go ha ka ke la le lo ma me mi mo na ne no pa pe ra re ri ro sa se so ta te va"
).split()

NAMES, NUMBERS, FILLED = 0.06, 0.04, 0.42
"""Shares of invented names, of numbers and of function words; all others are stems with endings."""


def short_turns(count: int, seed: int) -> list[str]:
    """Return turns of 8 to 12 words, as in a chat."""
    return _turns(count, seed, lambda chance: chance.randint(8, 12))


def mixed_turns(count: int, seed: int) -> list[str]:
    """Return turns of 5 to 100 words, about 35 tokens on average, most of them shorter."""
    return _turns(count, seed, lambda chance: min(100, 5 + round(chance.expovariate(1 / 22))))


def questions(turns: list[str], count: int, seed: int) -> list[str]:
    """Return questions with the last words of some turn."""
    chance = random.Random(seed)
    return [f"what about {' '.join(chance.choice(turns).rstrip('.').split()[-5:])}?" for _ in range(count)]


def distinct_questions(turns: list[str], count: int, seed: int) -> list[str]:
    """Return questions with different ends of turns: a repeated text would be taken from the cache of vectors."""
    shuffled = random.Random(seed).sample(turns, len(turns))
    pairs = ((shuffled[number % len(turns)], 4 + number // len(turns)) for number in range(count))
    return [f"what of {seed} about {' '.join(turn.rstrip('.').split()[-words:])}?" for turn, words in pairs]


def _turns(count: int, seed: int, length: Callable[[random.Random], int]) -> list[str]:
    chance = random.Random(seed)
    return [_sentence(chance, length(chance)) for _ in range(count)]


def _sentence(chance: random.Random, length: int) -> str:
    words = " ".join(_word(chance) for _ in range(length))
    return f"{words[0].upper()}{words[1:]}."


def _word(chance: random.Random) -> str:
    kind = chance.random()
    if kind < NAMES:
        return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))).capitalize()
    if kind < NAMES + NUMBERS:
        return str(chance.randint(2, 2000))
    if kind < NAMES + NUMBERS + FILLED:
        return chance.choice(FILLERS)
    return chance.choice(STEMS) + chance.choice(ENDINGS)
