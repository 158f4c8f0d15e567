"""A turn as numbers, for the classifier: which hashed pieces of text it has, and a few dozen values. Pure.

The same functions make the features for training and in use. Only the head and the tail of a long text are read, so
the time is bounded. Hashes are of the text alone, the same on every machine.
"""

import re
import zlib
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from agents.rules.cues.intents import intent_of
from agents.rules.interaction.cues import CueTable
from agents.rules.text.tokenizer import fold

HEAD_CHARS, TAIL_CHARS = 480, 160
"""Characters of the beginning and of the end that are read: a turn says what it is for first, or last."""

HASH_BUCKETS = 1 << 15
"""Numbers that pieces of text are hashed to, of words and of characters each."""

NGRAM_SIZES = (1, 2, 3, 4, 5)
"""Characters of the pieces within and across words."""

INTENTS = (
    "task", "implement", "debug", "fix", "error", "explore", "investigate", "learn", "explain", "teach", "general",
)  # fmt: skip
"""What `intents.intent_of` may say."""

_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?|\?|!|\u2026|\.\.\.|[:;,.()\"`]")
_DIGITS = re.compile(r"\d+")
_SPACES = re.compile(r"\s+")
_CODE = re.compile(r"```|[{};]\s{0,3}$|\w\(\)|\.\w{1,40}\(|=>|==|::|</\w{1,20}>|[a-z0-9]_[a-z0-9]", re.MULTILINE)
_LOG = re.compile(
    r"\b(?:ERROR|WARN|FATAL|INFO)\b|^\s{0,8}at \S{1,200}\(|\d\d:\d\d:\d\d|line \d+|0x[0-9a-f]+", re.MULTILINE
)
_FACE = re.compile(r"[:;]-?[)(DPp]|[\U0001f300-\U0001faff\u2600-\u27bf]")

FeatureIndices = NDArray[np.int64]
"""Shape (n,), each once, ascending, in 0..2 * BUCKETS."""

FeatureValues = NDArray[np.float64]
"""Shape (m,), about 0 to 1."""


def head_and_tail(text: str) -> str:
    """What is read of a text."""
    return text if len(text) <= HEAD_CHARS + TAIL_CHARS else f"{text[:HEAD_CHARS]} \u2026 {text[-TAIL_CHARS:]}"


def fold_for_hashing(part: str) -> str:
    """Without case, accents and line ends, with `0` for every number."""
    return _SPACES.sub(" ", _DIGITS.sub("0", fold(part))).strip()


def hash_ngrams(text: str) -> FeatureIndices:
    """The numbers of the words, pairs of words, first words and runs of characters of a folded text."""
    return np.unique(np.concatenate([_words(text), HASH_BUCKETS + _runs(text)]))


def dense_features(part: str, text: str, whole: int, cues: CueTable) -> FeatureValues:
    """Shape, intent and cues of what is read (`part`), which is `text` folded, of `whole` characters."""
    return np.concatenate([_shape(part, text, whole), _intent(part), _cue_values(cues, text)])


def _words(text: str) -> FeatureIndices:
    tokens = _TOKEN.findall(text)
    words = [token for token in tokens if token[0].isalnum()]
    named = [*tokens, *(f"{one} {two}" for one, two in pairwise(tokens))]
    named += [f"^{' '.join(words[:count])}" for count in (1, 2, 3)]
    named += [f"{' '.join(tokens[-count:])}$" for count in (1, 2)]
    return np.array([zlib.crc32(name.encode("utf-8", "surrogatepass")) % HASH_BUCKETS for name in named], np.int64)


def _runs(text: str) -> FeatureIndices:
    """Every run of 1 to 5 characters, hashed by a polynomial in the code points."""
    points = np.array([ord(character) for character in f"^{text}$"], np.uint64)
    rolled = np.zeros(len(points), np.uint64)
    found = []
    for size in NGRAM_SIZES:
        rolled = (rolled[: len(points) - size + 1] * np.uint64(1_000_003)) ^ points[size - 1 :]
        mixed = (rolled ^ (rolled >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        found.append((mixed >> np.uint64(40)) % np.uint64(HASH_BUCKETS))
        if len(points) <= size:
            break
    return np.concatenate(found).astype(np.int64)


def _shape(part: str, text: str, whole: int) -> FeatureValues:
    words = text.count(" ") + 1
    ends = text[-1:]
    return np.array(
        [
            ends == "?",
            ends == ".",
            ends == "!",
            ends in ("\u2026", ")", ":") or text.endswith(".."),
            ends.isalnum(),
            min(text.count("?") + part.count("\uff1f") + part.count("\u061f"), 3) / 3,
            "??" in text or "?!" in text,
            min(text.count("!"), 3) / 3,
            min(whole, 2000) ** 0.5 / 45,
            min(words, 40) / 40,
            words == 1,
            words <= 3,
            words <= 6,
            words >= 25,
            min(part.count("\n"), 6) / 6,
            bool(_CODE.search(part)),
            bool(_LOG.search(part)),
            bool(_FACE.search(part)),
            min(sum(character.isdigit() for character in part), 20) / 20,
            part[:1].isupper(),
            min(text.count(","), 5) / 5,
            min(text.count(". ") + text.count("? ") + text.count("! "), 5) / 5,
            not part.isascii(),
            ":" in text,
        ],
        np.float64,
    )


def _intent(part: str) -> FeatureValues:
    found = intent_of(part)
    return np.array([found == intent for intent in INTENTS], np.float64)


def _cue_values(cues: CueTable, text: str) -> FeatureValues:
    """The counts, and whether there are any."""
    counts = cues.counts(text).ravel()
    return np.concatenate([counts, counts > 0])
