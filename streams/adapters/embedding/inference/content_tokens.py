"""Which tokens of a passage are worth keeping: those of words that carry meaning.

Enters: a text and where its tokens stand in it. Leaves: which of them to keep. Guaranteed: pure; all pieces of a word
are kept or none is; a text of stop words and punctuation alone keeps all its tokens.
"""

import re

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.stop_words import stop_words_of
from agents.rules.text.tokenizer import fold
from schemas.vectors import Spans

WORD_PATTERN = re.compile(r"\w+(?:['\u2019]\w+)*")
"""A run of letters and digits, with the apostrophes inside it: `don't` is one stop word, not three tokens."""


def content_token_mask(text: str, spans: Spans) -> NDArray[np.bool_]:
    """For each span whether it touches a word that is no stop word of the text's language; all true where none does."""
    words = [(match.start(), match.end(), fold(match.group())) for match in WORD_PATTERN.finditer(text)]
    stops = stop_words_of([word for _, _, word in words])
    telling = np.zeros(len(text) + 1, np.int32)
    for start, end, word in words:
        if word not in stops:
            telling[start + 1 : end + 1] = 1
    before = telling.cumsum()
    kept: NDArray[np.bool_] = before[spans[:, 1]] > before[spans[:, 0]]
    return kept if kept.any() else np.ones(len(spans), np.bool_)
