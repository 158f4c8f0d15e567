"""Detection of texts that an English model can't read."""

import pytest

from agents.rules.text.non_english import MAX_LANGUAGE_CHARS, is_non_english


@pytest.mark.parametrize(
    "text",
    [
        "Ayer fui al mercado con Lucía y compramos tomates.",
        "¿Puedes traerlo mañana a la oficina?",
        "Der Hund schläft im Garten.",
        "J'ai perdu mes clés dans le train.",
        "Ho comprato il pane e il latte.",
        "Amanhã eu não vou para o trabalho.",
        "Вчера я ходил в магазин.",
        "昨日、新しい自転車を買いました。",
        "어제 새 자전거를 샀어요",
        "Χθες αγόρασα ένα ποδήλατο",
        "اشتريت دراجة جديدة أمس",
        "Wczoraj kupiłem nowy rower, żeby jeździć",
        "我昨天在 Tokyo 买了一辆新的自行车",
    ],
)
def test_another_language_is_foreign(text: str) -> None:
    assert is_non_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "ok",
        "42",
        "def main(): return 0",
        "The deploy target is fly.io now.",
        "We stayed in La Paz and then in São Paulo.",
        "I love the café de Flore, it's très chic!",
        "She said 'no me gusta' and left the room.",
        "He works at the Deutsche Bank, near der Dom.",
        "The word 自転車 means bicycle in Japanese.",
        "merci",
        "Specimen s5a20da284d75 was labelled.",
        "5a20da284 de-la/en.el un_la die.das",
        "NAME STATUS ROLES AGE VERSION\notter Ready etcd 611d\nheron Ready worker 12d es la\npike Ready worker 3d",
        "$ ls -l -a | grep -e a -e o > d",
        "Ahh! I'm screaming, Milo's here!",
        "Zoë",
        "🙂🙂🙂",
    ],
)
def test_english_and_undecidable_texts_are_not_foreign(text: str) -> None:
    assert not is_non_english(text)


def test_only_the_beginning_is_read() -> None:
    english, german = "the house is on the hill. ", "das Haus ist auf dem Berg. "
    assert not is_non_english(english * (MAX_LANGUAGE_CHARS // len(english) + 1) + german * 500)
    assert is_non_english(german * (MAX_LANGUAGE_CHARS // len(german) + 1) + english * 500)
