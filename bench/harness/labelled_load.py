"""Our English conversations with their questions, and synthetic turns up to a wanted number."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.harness.texts import short_turns
from schemas.messages.turns import Turn
from training.ranking.conversations import LabelledQuestion, read_conversations

FOREIGN = ("german", "german-team", "french", "spanish", "spanish-team", "italian", "portuguese")
"""Conversations that the English model can't read."""


@dataclass(frozen=True)
class Load:
    """Turns and questions; `evidence` has the memory ids of each question's answers once they are stored."""

    turns: Sequence[Turn]
    questions: Sequence[LabelledQuestion]

    @classmethod
    def of(cls, memories: int, asked: int) -> "Load":
        """Return the conversations with as many synthetic turns as are missing, and some of the questions."""
        conversations = [one for one in read_conversations() if one.name.removeprefix("conv-") not in FOREIGN]
        said = [turn for one in conversations for turn in one.turns]
        rest = short_turns(max(0, memories - len(said)), seed=7)
        filler = [
            said[0].model_copy(
                update={"turn_id": f"filler-{number}", "conversation_id": f"f{number // 40}", "content": text}
            )
            for number, text in enumerate(rest)
        ]
        turns = [*said, *filler][:memories]
        known = {turn.turn_id for turn in turns}
        every = [question for one in conversations for question in one.questions]
        questions = [one for one in every if one.evidence and known.issuperset(one.evidence)]
        return cls(turns, questions[:: max(1, len(questions) // asked)][:asked])
