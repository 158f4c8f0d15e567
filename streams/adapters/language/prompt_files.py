"""The prompts of the project: files named by their version, so that an answer can be traced to the words it is to."""

from pathlib import Path

PROMPTS = Path(__file__).parents[3] / "agents" / "data" / "prompts"


def read_prompt(version: str) -> str:
    """The template of that version, such as `understand-1`. Raises FileNotFoundError for one that is not there."""
    return (PROMPTS / f"{version}.md").read_text(encoding="utf-8")
