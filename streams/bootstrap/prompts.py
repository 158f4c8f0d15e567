"""The prompt templates of a worker: the project's, and a deployment's from the directory `PROMPTS`.

A template is a file `<name>-<version>.md`; `<name>-<version>` is recorded with each of its answers. `<name>` says which
step uses it. Guaranteed: every template of a `Prompts` can be filled by its step.
"""

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agents.rules.prompts.prompting import Template, check_template
from streams.settings import Settings

PROJECT_PROMPTS = Path(__file__).parents[2] / "agents" / "data" / "prompts"

VERSION = re.compile(r"([a-z]+)-[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Name and version: a file name without its ending."""

UNDERSTANDING_PROMPT = "understand-3"
"""The project's template for turns."""

DISTILLING_PROMPT = "distil-2"
"""For summaries of clusters."""

CATEGORY_PROMPT = "categorize-2"
"""For summaries of categories."""

RERANK_PROMPT = "rerank-1"
"""For the order of hits."""

SUFFICIENCY_PROMPT = "suffice-1"
"""For the layer that suffices."""


ADJUSTING_PROMPT = "adjust-1"
"""For goals that were reached, and constraints that were lifted."""

WORDING_PROMPT = "word-1"
"""For questions of an evaluation."""

ANSWER_PROMPT = "answer-1"
"""For answers to questions: its system text, and the text before the memories."""


class PromptUse(NamedTuple):
    """How a step uses its template: its default version, and its placeholders."""

    default: str
    required: frozenset[str]
    optional: frozenset[str] = frozenset()


PROMPT_USES: Mapping[str, PromptUse] = {
    "understand": PromptUse(
        UNDERSTANDING_PROMPT, frozenset({"turn"}), frozenset({"about", "categories", "earlier", "modes", "recent"})
    ),
    "distil": PromptUse(DISTILLING_PROMPT, frozenset({"said"}), frozenset({"mode"})),
    "categorize": PromptUse(CATEGORY_PROMPT, frozenset({"items"}), frozenset({"category", "mode"})),
    "adjust": PromptUse(ADJUSTING_PROMPT, frozenset({"entries", "turns"})),
    "rerank": PromptUse(RERANK_PROMPT, frozenset({"memories", "question"})),
    "answer": PromptUse(ANSWER_PROMPT, frozenset()),
    "word": PromptUse(WORDING_PROMPT, frozenset({"earlier", "later"})),
    "suffice": PromptUse(SUFFICIENCY_PROMPT, frozenset({"layers", "question"})),
}


class Prompts:
    def __init__(self, own: Path | None = None, chosen: Mapping[str, str] | None = None) -> None:
        """Read all templates; `own` is a deployment's directory, `chosen` are versions by name.

        Raises ValueError or OSError, naming the file, for an unusable directory or template.
        """
        self._templates = dict(_project_templates())
        for template in _read_own(own):
            if template.version in self._templates:
                message = f"{template.version}.md has the version of one of the project's templates: give it another"
                raise ValueError(message)
            self._templates[template.version] = template
        if unknown := sorted(set(chosen or {}) - PROMPT_USES.keys()):
            raise ValueError(f"there are no templates for {unknown}; there are some for {_names()}")
        self._chosen = {name: self.get(version, name) for name, version in (chosen or {}).items()}

    def get(self, version: str, name: str | None = None) -> Template:
        """Return the template of a version such as `understand-1`.

        Raises ValueError for an unknown one, and for one of another step than `name`.
        """
        template = self._templates.get(version)
        if template is None or name not in (None, _name_of(version)):
            known = sorted(self._templates) if name is None else self.versions(name)
            raise ValueError(f"there is no template {version[:80]!r}; there are {', '.join(known) or 'none'}")
        return template

    def versions(self, name: str) -> list[str]:
        """Return the versions of a name, such as `understand`, in order."""
        return sorted(version for version in self._templates if _name_of(version) == name)

    def of(self, name: str) -> Template:
        """Return the template that the deployment has chosen for a name, or else the project's."""
        return self._chosen.get(name) or self.get(PROMPT_USES[name].default)


def open_prompts(settings: Settings) -> Prompts:
    """Read the templates of the settings. Ends the process if one of them can't be used."""
    try:
        own = Prompts(settings.prompts)
    except (OSError, ValueError) as problem:
        sys.exit(f"setting MODESTREAM_PROMPTS: {problem}")
    if not settings.prompt_versions:
        return own
    try:
        return Prompts(settings.prompts, settings.prompt_versions)
    except ValueError as problem:
        sys.exit(f"setting MODESTREAM_PROMPT_VERSIONS: {problem}")


@cache
def _project_templates() -> Mapping[str, Template]:
    return {template.version: template for template in map(_read, sorted(PROJECT_PROMPTS.glob("*.md")))}


def _read_own(directory: Path | None) -> list[Template]:
    if directory is None:
        return []
    if not directory.is_dir():
        raise ValueError(f"{directory} is no directory")
    return [_read(file) for file in sorted(directory.glob("*.md"))]


def _read(file: Path) -> Template:
    """Read and check a template. Raises ValueError with the name of the file."""
    version = file.stem
    use = PROMPT_USES.get(_name_of(version) or "")
    if use is None:
        raise ValueError(f"{file.name}: a template is named <name>-<version>.md, where <name> is one of {_names()}")
    try:
        template = Template(file.read_text(encoding="utf-8"), version)
        check_template(template, filled=use.required | use.optional, required=use.required)
    except ValueError as problem:
        raise ValueError(f"{file.name}: {problem}") from problem
    return template


def _name_of(version: str) -> str | None:
    found = VERSION.fullmatch(version)
    return None if found is None else found[1]


def _names() -> str:
    return ", ".join(sorted(PROMPT_USES))
