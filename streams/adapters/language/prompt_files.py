"""The prompt templates: files named by their version, so that an answer can be traced to its prompt."""

from pathlib import Path

PROMPTS = Path(__file__).parents[3] / "agents" / "data" / "prompts"


def read_prompt(version: str) -> str:
    """Return the template of a version such as `understand-1`. Raises FileNotFoundError for an unknown one."""
    return (PROMPTS / f"{version}.md").read_text(encoding="utf-8")
