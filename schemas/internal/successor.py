"""The deployment that replaces another one: `successor.v1`, beside the former one's record in its topic `service`.

Written by `migrate --switch`; gateways follow it, so the former prefix in their settings goes on naming the deployment
that serves. What a later release writes in another form is refused by `ValidationError`.
"""

from typing import Literal

from pydantic import BaseModel, Field

SUCCESSOR_KEY = b"successor"
"""The key of the record; of several the last one counts."""

PAUSE_S = 60.0
"""Seconds that gateways wait at most from `pausing` on; then the former deployment serves again."""

SuccessorState = Literal["pausing", "serving", "withdrawn", "dropped"]
"""`pausing`: they send nothing, while the last records are copied. `serving`: they send to the successor.
`withdrawn`: the former deployment serves after all. `dropped`: the successor serves, and the former topics are deleted.
"""


class Successor(BaseModel, frozen=True, populate_by_name=True):
    """Where the successor is; `broker` is None on the same broker."""

    schema_: Literal["successor.v1"] = Field(default="successor.v1", alias="schema")
    state: SuccessorState
    topic_prefix: str
    broker: str | None = None

    @property
    def serves(self) -> bool:
        """True if gateways send to the successor."""
        return self.state in ("serving", "dropped")
