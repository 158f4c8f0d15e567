"""The words of one boundary, and which of them count as one word. Pure.

The index keeps words with their endings, so a term means the same whether or not the language of its text could be
told. A question's word stands for every word of the boundary that has the same stem in a language that is spoken there,
or that is alike in its letters (`agents.rules.index.char_ngrams`).
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from agents.rules.index.char_ngrams import CharNgrams
from agents.rules.text.stemming import stems

MAX_INSERTED_WORDS = 64
"""New words that are put into the sorted list one by one; of more the list is sorted again."""

MIN_PENDING_WORDS = 256
"""New words, at least, until the letter runs of all are cut again; until then theirs lie beside."""

_LAST = "\U0010ffff"


class Vocabulary:
    """The different words of one boundary; grows only. `words` are folded, in any order, each once."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words = sorted(words)
        self._runs = CharNgrams.of(self._words)
        self._new: list[str] = []
        self._new_runs = CharNgrams.of(())
        self._heard: set[str] = set()

    def __len__(self) -> int:
        self._learn()
        return len(self._words)

    def add(self, words: Iterable[str]) -> None:
        """Hear words, known or new."""
        self._heard.update(words)

    def expand_terms(self, asked: Sequence[str], languages: Sequence[int], *, alike: bool = True) -> list[list[str]]:
        """For each word asked for, the words of this boundary that count as it, each once, in order.

        `languages` are places in `agents.rules.text.languages.LANGUAGES`. Without `alike` only those with the same stem.
        """
        self._learn()
        found = [{word} if self._has(word) else set() for word in asked]
        for language in languages:
            for word, stem, one in zip(asked, stems(asked, language), found, strict=True):
                one.update(self._with_stem(word, stem, language))
        if alike:
            self._add_alike(asked, found)
        return [sorted(one) for one in found]

    def _add_alike(self, asked: Sequence[str], found: Sequence[set[str]]) -> None:
        runs = CharNgrams.of(asked)
        alike: dict[str, set[str]] = {word: set() for word in runs.words}
        for known in (self._runs, self._new_runs):
            for word, near in zip(runs.words, known.similar_words(runs), strict=True):
                alike[word].update(near)
        for word, one in zip(asked, found, strict=True):
            one.update(alike.get(word, ()))

    def _with_stem(self, word: str, stem: str, language: int) -> list[str]:
        """The words with this stem: they begin as it does, but for its last letter, which a stemmer may change."""
        beginning = stem[: max(len(stem) - 1, min(len(stem), 2))]
        if not word.startswith(beginning):
            return []
        first, after = bisect_left(self._words, beginning), bisect_left(self._words, beginning + _LAST)
        candidates = self._words[first:after]
        return [one for one, its in zip(candidates, stems(candidates, language), strict=True) if its == stem]

    def _has(self, word: str) -> bool:
        place = bisect_left(self._words, word)
        return place < len(self._words) and self._words[place] == word

    def _learn(self) -> None:
        """Take in what was heard since the last question."""
        if not self._heard:
            return
        new = [word for word in self._heard if not self._has(word)]
        self._heard.clear()
        if not new:
            return
        if len(new) <= MAX_INSERTED_WORDS:
            for word in new:
                insort(self._words, word)
        else:
            self._words = sorted([*self._words, *new])
        self._new += new
        if len(self._new) > max(MIN_PENDING_WORDS, len(self._words) // 8):
            self._runs, self._new = CharNgrams.of(self._words), []
        self._new_runs = CharNgrams.of(self._new)
