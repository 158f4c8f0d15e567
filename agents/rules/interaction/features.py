"""Features of a turn for the classifier: hashed n-grams and a few dozen dense values. Pure.

Training and inference use the same functions. Only the head and the tail of a long text are read, so time is bounded.
Hashes depend on the text alone and are the same on every machine.
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
"""Characters read from the beginning and the end of a text: a turn states its purpose first or last."""

HASH_BUCKETS = 1 << 15
"""Hash buckets of word n-grams; character n-grams have as many of their own."""

NGRAM_SIZES = (1, 2, 3, 4, 5)
"""Characters of character n-grams, which cross word boundaries."""

INTENTS = (
    "task", "implement", "debug", "fix", "error", "explore", "investigate", "learn", "explain", "teach", "general",
)  # fmt: skip
"""The intents that `intents.intent_of` returns."""

_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?|\?|!|\u2026|\.\.\.|[:;,.()\"`]")
_DIGITS = re.compile(r"\d+")
_SPACES = re.compile(r"\s+")
_CODE = re.compile(r"```|[{};]\s{0,3}$|\w\(\)|\.\w{1,40}\(|=>|==|::|</\w{1,20}>|[a-z0-9]_[a-z0-9]", re.MULTILINE)
_LOG = re.compile(
    r"\b(?:ERROR|WARN|FATAL|INFO)\b|^\s{0,8}at \S{1,200}\(|\d\d:\d\d:\d\d|line \d+|0x[0-9a-f]+", re.MULTILINE
)
_FACE = re.compile(r"[:;]-?[)(DPp]|[\U0001f300-\U0001faff\u2600-\u27bf]")

FeatureIndices = NDArray[np.int64]
"""Shape (n,), unique, ascending, below 2 * HASH_BUCKETS."""

FeatureValues = NDArray[np.float64]
"""Shape (m,), about 0 to 1."""


def head_and_tail(text: str) -> str:
    """Return the part of a text that is read."""
    return text if len(text) <= HEAD_CHARS + TAIL_CHARS else f"{text[:HEAD_CHARS]} \u2026 {text[-TAIL_CHARS:]}"


def fold_for_hashing(part: str) -> str:
    """Remove case, accents and line ends, and replace every number by `0`."""
    return _SPACES.sub(" ", _DIGITS.sub("0", fold(part))).strip()


def hash_ngrams(text: str) -> FeatureIndices:
    """Return the bucket numbers of a folded text's words, word pairs, first and last words, and character n-grams."""
    return np.unique(np.concatenate([_word_ngrams(text), HASH_BUCKETS + _char_ngrams(text)]))


def dense_features(part: str, folded: str, length: int, cues: CueTable) -> FeatureValues:
    """Return the shape, intent and cue features of `part`, the read part of a text of `length` characters."""
    return np.concatenate([_shape_features(part, folded, length), _intent_features(part), _cue_features(cues, folded)])


def _word_ngrams(text: str) -> FeatureIndices:
    tokens = _TOKEN.findall(text)
    words = [token for token in tokens if token[0].isalnum()]
    ngrams = [*tokens, *(f"{one} {two}" for one, two in pairwise(tokens))]
    ngrams += [f"^{' '.join(words[:count])}" for count in (1, 2, 3)]
    ngrams += [f"{' '.join(tokens[-count:])}$" for count in (1, 2)]
    return np.array([zlib.crc32(ngram.encode("utf-8", "surrogatepass")) % HASH_BUCKETS for ngram in ngrams], np.int64)


def _char_ngrams(text: str) -> FeatureIndices:
    """Hash every n-gram by a polynomial in the code points."""
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


def _shape_features(part: str, folded: str, length: int) -> FeatureValues:
    words = folded.count(" ") + 1
    last = folded[-1:]
    return np.array(
        [
            last == "?",
            last == ".",
            last == "!",
            last in ("\u2026", ")", ":") or folded.endswith(".."),
            last.isalnum(),
            min(folded.count("?") + part.count("\uff1f") + part.count("\u061f"), 3) / 3,
            "??" in folded or "?!" in folded,
            min(folded.count("!"), 3) / 3,
            min(length, 2000) ** 0.5 / 45,
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
            min(folded.count(","), 5) / 5,
            min(folded.count(". ") + folded.count("? ") + folded.count("! "), 5) / 5,
            not part.isascii(),
            ":" in folded,
        ],
        np.float64,
    )


def _intent_features(part: str) -> FeatureValues:
    found = intent_of(part)
    return np.array([found == intent for intent in INTENTS], np.float64)


def _cue_features(cues: CueTable, folded: str) -> FeatureValues:
    counts = cues.counts(folded).ravel()
    return np.concatenate([counts, counts > 0])
