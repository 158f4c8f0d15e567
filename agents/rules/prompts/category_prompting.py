"""A category and its members as a prompt for a language model. Pure.

Enters: a template of the project, and what is stored. Leaves: a prompt of bounded length, in which everything stored
stands between fences that nothing stored can close.
"""

import json
from collections.abc import Sequence

from agents.rules.prompts.prompting import MAX_DESCRIPTION_CHARS, MAX_EXCERPT_CHARS, clip_text, fill_prompt
from schemas.categories import Category
from schemas.language import Prompt


def summary_prompt(template: str, version: str, category: Category, texts: Sequence[str]) -> Prompt:
    """What a model is asked about one category; `texts` are what its members say, the most typical first.

    Raises ValueError for a template without its two parts or with a place that nothing fills.
    """
    about = {"name": category.name, "description": clip_text(category.description, MAX_DESCRIPTION_CHARS)}
    lines = "\n".join(json.dumps(clip_text(text, MAX_EXCERPT_CHARS), ensure_ascii=False) for text in texts)
    return fill_prompt(template, version, {"category": json.dumps(about, ensure_ascii=False), "items": lines})
