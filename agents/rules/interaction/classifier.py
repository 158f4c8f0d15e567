"""The trained classifier of interaction modes: features of a turn, and a linear model in numpy. Pure.

Enters: the model file's bytes; then a text and its vector of the general embedder. Leaves: calibrated probabilities.
Guaranteed: bounded time for a text of any length, as only its head and tail are read; loading executes no code. The
temperature that calibrates is in the weights.

Features are hashed n-grams, shape, intent, and counts of cue phrases, the same for training and inference. Hashes
depend on the text alone and are the same on every machine. Cue phrases are given in many languages, as lines
`GROUP language: phrase, phrase, stem*`; counting takes time linear in the text, whatever the number of phrases.

The file is `MODESTREAM INTERACTION 2`, a line of JSON (the modes, a digest of the examples, the cue table, each array's
name, type and shape), then the arrays one after another, little-endian, in row-major order.
"""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from agents.rules.cues.intents import intent_of
from agents.rules.text.tokenizer import fold
from schemas.models.vectors import Vector
from schemas.state.interaction import INTERACTION_MODES

BEGINNING_WORDS = 3
"""First words of a text, in one of which a phrase at the beginning starts."""

MAX_CUE_COUNT = 3
"""Matches of a group above which the count is clipped."""

_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
"""Thai, Kana, Han and Hangul: their phrases match inside words."""

_UNSPACED_BEGINNING_CHARS = 6
"""First characters of an unspaced text, in one of which a phrase at the beginning starts."""

MIN_STEM_CHARS = 2
"""Characters of the prefix by which stems are looked up; a stem has at least as many."""

CueCounts = NDArray[np.float64]
"""Shape (2, groups): matches at the beginning, and anywhere; scaled to 0..1."""

CueGroups = tuple[str, tuple[int, ...]]
"""A phrase or a stem, and its groups."""


@dataclass(frozen=True, slots=True)
class CueTable:
    """Cues by lookup key: phrases by their first one or two words, stems by their beginning, unspaced pieces."""

    groups: tuple[str, ...]
    phrases: dict[str, tuple[CueGroups, ...]]
    stems: dict[str, tuple[CueGroups, ...]]
    pieces: tuple[tuple[str, int], ...]

    @classmethod
    def loads(cls, text: str) -> Self:
        """Parse the table; lines that begin with `#` are comments. Raises ValueError for a malformed line."""
        rows = [line.split(":", 1) for line in text.splitlines() if line and not line.startswith("#")]
        groups = tuple(dict.fromkeys(head.split()[0] for head, _ in rows))
        phrases: dict[str, set[int]] = {}
        stems: dict[str, set[int]] = {}
        pieces: dict[tuple[str, int], None] = {}
        for head, listed in rows:
            number = groups.index(head.split()[0])
            for cue in filter(None, (fold(cue.strip()) for cue in listed.split(","))):
                if _UNSPACED.search(cue):
                    pieces[cue, number] = None
                else:
                    kind = stems if cue.endswith("*") else phrases
                    kind.setdefault(" ".join(_WORD.findall(cue)), set()).add(number)
        by_words, by_start = (lambda phrase: " ".join(phrase.split(" ")[:2])), (lambda stem: stem[:MIN_STEM_CHARS])
        return cls(groups, _grouped(phrases, by_words), _grouped(stems, by_start), tuple(pieces))

    def counts(self, folded: str) -> CueCounts:
        anywhere, early = [0] * len(self.groups), [0] * len(self.groups)
        words = _WORD.findall(folded)
        pairs = [f"{word} {other}" for word, other in pairwise(words)]
        for start, word in enumerate(words):
            phrases = (*self.phrases.get(word, ()), *(self.phrases.get(pairs[start], ()) if start < len(pairs) else ()))
            stems = self.stems.get(word[:MIN_STEM_CHARS], ())
            matched = [
                # The first one or two words of a phrase match already.
                *(
                    number
                    for phrase, of in phrases
                    if phrase.count(" ") < 2 or " ".join(words[start : start + phrase.count(" ") + 1]) == phrase
                    for number in of
                ),
                *(number for stem, of in stems if word.startswith(stem) for number in of),
            ]
            for number in matched:
                anywhere[number] += 1
                early[number] += start < BEGINNING_WORDS
        counts = np.array([early, anywhere], np.float64)
        if _UNSPACED.search(folded):
            for piece, cue in self.pieces:
                position = folded.find(piece)
                if position >= 0:
                    counts[1, cue] += 1
                    counts[0, cue] += position < _UNSPACED_BEGINNING_CHARS
        return np.minimum(counts, MAX_CUE_COUNT) / MAX_CUE_COUNT


_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def _grouped(numbers: dict[str, set[int]], key: Callable[[str], str]) -> dict[str, tuple[CueGroups, ...]]:
    grouped: dict[str, tuple[CueGroups, ...]] = {}
    for cue, groups in numbers.items():
        grouped[key(cue)] = (*grouped.get(key(cue), ()), (cue, tuple(sorted(groups))))
    return grouped


HEAD_CHARS, TAIL_CHARS = 480, 160
"""Characters read from the beginning and the end of a text: a turn states its purpose first or last."""

HASH_BUCKETS = 1 << 15
"""Hash buckets of word n-grams, a power of two; character n-grams have as many of their own."""

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
    tokens = _TOKEN.findall(text)
    words = [token for token in tokens if token[0].isalnum()]
    ngrams = [*tokens, *(f"{token} {following}" for token, following in pairwise(tokens))]
    ngrams += [f"^{' '.join(words[:count])}" for count in (1, 2, 3)]
    ngrams += [f"{' '.join(tokens[-count:])}$" for count in (1, 2)]
    of_words = np.array(
        [zlib.crc32(ngram.encode("utf-8", "surrogatepass")) % HASH_BUCKETS for ngram in ngrams], np.int64
    )
    # Every n-gram of characters is hashed by a polynomial in the code points.
    points = np.frombuffer(f"^{text}$".encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    rolled = np.zeros(len(points), np.uint64)
    grams = []
    for size in NGRAM_SIZES:
        rolled = (rolled[: len(points) - size + 1] * np.uint64(1_000_003)) ^ points[size - 1 :]
        grams.append(rolled)
        if len(points) <= size:
            break
    hashes = np.concatenate(grams)
    mixed = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    of_characters = ((mixed >> np.uint64(40)) & np.uint64(HASH_BUCKETS - 1)).astype(np.int64)
    indices = np.concatenate([of_words, HASH_BUCKETS + of_characters])
    # Sorted in place and without repetitions: a fifth of the time of `np.unique`, on every turn.
    indices.sort()
    is_first = np.ones(len(indices), np.bool_)
    is_first[1:] = indices[1:] != indices[:-1]
    return indices[is_first]


def dense_features(part: str, folded: str, length: int, cues: CueTable) -> FeatureValues:
    """Return the shape, intent and cue features of `part`, the read part of a text of `length` characters."""
    intent, counts = intent_of(part), cues.counts(folded).ravel()
    one_hot = np.array([intent == name for name in INTENTS], np.float64)
    words = folded.count(" ") + 1
    last = folded[-1:]
    shape = np.array(
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
    return np.concatenate([shape, one_hot, counts, counts > 0])


MODEL_FILE_MAGIC = b"MODESTREAM INTERACTION 2\n"
"""The first bytes of the file; the number counts up with the format."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InteractionClassifier:
    """A loaded model. `about` is the file's JSON line."""

    about: dict[str, Any]
    cues: CueTable
    vector_weights: FloatArray
    value_weights: FloatArray
    piece_weights: FloatArray
    bias: FloatArray

    @classmethod
    def loads(cls, data: bytes) -> Self:
        """Parse a model file. Raises ValueError for another format, other modes or other features."""
        if not data.startswith(MODEL_FILE_MAGIC):
            raise ValueError("not a model of interaction modes, or one of another format version")
        end = data.index(b"\n", len(MODEL_FILE_MAGIC))
        about = orjson.loads(data[len(MODEL_FILE_MAGIC) : end])
        if tuple(about["modes"]) != INTERACTION_MODES or about["buckets"] != HASH_BUCKETS:
            raise ValueError("the model was trained for other modes or features; train it again")
        arrays: dict[str, FloatArray] = {}
        body, start = data[end + 1 :], 0
        for description in about["arrays"]:
            count, dtype = int(np.prod(description["shape"])), np.dtype(description["dtype"])
            array = np.frombuffer(body, dtype, count, start).reshape(description["shape"])
            arrays[description["name"]] = array.astype(np.float64)
            start += count * dtype.itemsize
        if start != len(body):
            raise ValueError("the model file has more bytes than its header describes")
        scaled = arrays.pop("piece_weights") * arrays.pop("piece_scale")
        return cls(about, CueTable.loads(about["cues"]), piece_weights=scaled, **arrays)

    def probabilities(self, text: str, vector: Vector) -> FloatArray:
        """Return the probability of each mode in the order of `INTERACTION_MODES`; shape (5,), summing to 1.

        `vector` is the text's by the general embedder, shape (384,). Raises ValueError for another shape.
        """
        part = head_and_tail(text)
        folded = fold_for_hashing(part)
        logits = vector @ self.vector_weights + dense_features(part, folded, len(text), self.cues) @ self.value_weights
        ngrams = hash_ngrams(folded)
        words = int(np.searchsorted(ngrams, HASH_BUCKETS))
        for indices in (ngrams[:words], ngrams[words:]):
            if len(indices):
                logits += self.piece_weights[indices].sum(axis=0) / np.sqrt(len(indices))
        return softmax(logits + self.bias)


def softmax(logits: FloatArray) -> FloatArray:
    """Return the softmax over the last axis."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: FloatArray = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return shares
