"""The tokenizer of multilingual-e5-small, which is XLM-R's: the most likely segmentation into scored pieces.

Enters: the model's file. Leaves: the tokenizer's files in a folder. Guaranteed: a token's span is its place in the
original text, with the space before it.

Method: unigram language model, Kudo 2018, https://arxiv.org/abs/1804.10959.
"""

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import NFKC, Nmt, Normalizer, Replace, Sequence
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from streams.adapters.export.e5_file import E5File
from streams.adapters.exported_models import E5

WIDE_TILDE = "\uff5e"
"""Exempt from NFKC, which would make it `~`: it is common in Chinese and Japanese, and has pieces of its own."""

STAND_IN = "\ufdd0"
"""Replaces the wide tilde during NFKC: a code point that Unicode reserves for internal use."""


def write_tokenizer(e5: E5File, folder: Path, config: dict[str, object], max_tokens: int) -> None:
    """Write `E5.tokenizer_files`; texts are truncated at `max_tokens`, special tokens included."""
    names = _special_names(e5)
    described = {"model_max_length": max_tokens, "tokenizer_class": "XLMRobertaTokenizer", **names}
    tokenizer_of(e5, max_tokens).save(str(folder / "tokenizer.json"), pretty=False)
    for name, content in zip(E5.tokenizer_files[1:], (described, names, config), strict=True):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")


def tokenizer_of(e5: E5File, max_tokens: int) -> Tokenizer:
    """Build the tokenizer."""
    specials = e5.specials
    scored = [(piece, float(score)) for piece, score in zip(e5.pieces, e5.scores, strict=True)]
    tokenizer = Tokenizer(Unigram(scored, unk_id=specials.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = Metaspace()
    begin, end = e5.pieces[specials.begin], e5.pieces[specials.end]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, specials.begin), (end, specials.end)]
    )
    tokenizer.add_special_tokens([AddedToken(e5.pieces[number], normalized=False) for number in specials])
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def normalizer() -> Normalizer:
    """NFKC, no control characters, any white space as one space: the rules `nmt_nfkc` that XLM-R was trained with.

    Rules: https://github.com/google/sentencepiece/blob/master/doc/normalization.md.
    """
    tilde_away, tilde_back = Replace(WIDE_TILDE, STAND_IN), Replace(STAND_IN, WIDE_TILDE)
    return Sequence([tilde_away, Nmt(), NFKC(), tilde_back, Replace(Regex(" {2,}"), " ")])


def _special_names(e5: E5File) -> dict[str, str]:
    begin, padding, end, unknown = (e5.pieces[number] for number in e5.specials)
    roles = {"bos_token": begin, "cls_token": begin, "eos_token": end, "sep_token": end}
    return roles | {"pad_token": padding, "unk_token": unknown}
