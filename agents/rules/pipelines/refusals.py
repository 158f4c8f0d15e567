"""Refusals of edits: each names the rule that it breaks. Pure."""

from typing import Literal

from schemas.failures import Rejected

Rule = Literal[
    "unknown_step", "duplicate_step", "wrong_pipeline", "wrong_order", "step_is_fixed", "not_replaceable", "no_place",
    "missing_requirement", "undeclared_product", "unknown_profile", "unknown_template", "capability_unavailable",
    "unknown_class", "unlisted_package", "invalid_config",
]  # fmt: skip
"""The rules; `docs/pipelines.md` explains each."""


def refuse(rule: Rule, message: str) -> Rejected:
    """Return the refusal of an edit."""
    return Rejected("invalid_value", f"rule {rule}: {message}", "arguments.edits")
