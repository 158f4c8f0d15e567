"""A classifier of interaction modes with a configurable answer."""

from typing import Any

import numpy as np
from modestream_client.vocabulary import InteractionMode
from numpy.typing import NDArray

from agents.rules.interaction.classifier import InteractionClassifier
from schemas.models.vectors import Vector
from schemas.state.interaction import INTERACTION_MODES


class FixedClassifier(InteractionClassifier):
    """Gives one mode probability `share` and distributes the rest evenly. `asked` are the inputs."""

    asked: list[tuple[str, Vector]]

    def __init__(self, mode: InteractionMode = "GENERAL", share: float = 0.2) -> None:
        object.__setattr__(self, "asked", [])
        self.say(mode, share)

    def say(self, mode: InteractionMode, share: float) -> None:
        object.__setattr__(self, "said", (mode, share))

    def probabilities(self, text: str, vector: Vector) -> NDArray[np.float64]:
        self.asked.append((text, vector))
        said: Any = getattr(self, "said")  # noqa: B009 - the frozen parent does not declare it
        mode, share = said
        rest = (1 - share) / (len(INTERACTION_MODES) - 1)
        return np.array([share if each == mode else rest for each in INTERACTION_MODES])
