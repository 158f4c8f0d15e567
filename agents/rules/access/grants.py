"""Check a principal's grants and the limits of a single request. Pure.

Anything not granted is refused; a refusal reveals nothing about others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from schemas.failures import Rejected
from schemas.messages.assemble import AssembleRequest
from schemas.messages.retrieval import ListRequest, MapRequest, RetrieveRequest
from schemas.scopes import ANY_VALUE, Scope, Selector
from schemas.state.policies import OPERATOR, Grant, Grants, Permission, admits

PRINCIPAL_HEADER = "principal"
"""The header with the sender's principal."""

MAX_PRINCIPAL_CHARS = 80
"""Maximum characters of a principal repeated in an error: the header may be of any length."""


def require_permission(policy: Grants, principal: str | None, act: Permission, scope: Scope) -> None:
    """Raise Rejected, `not_allowed`, unless a grant covers the scope."""
    if not any(grant.covers(scope) for grant in _grants(policy, principal, act)):
        raise _refused(principal, act)


def require_operating(policy: Grants, principal: str | None) -> None:
    """Raise Rejected, `not_allowed`, unless a grant for all users and projects has the permission `operate`."""
    if not any(grant.is_for_all for grant in _grants(policy, principal, "operate")):
        raise _refused(principal, "operate")


def require_operator(principal: str | None) -> None:
    """Raise Rejected, `not_allowed`, unless the sender claims to be the operator: for deployments without a policy.

    A header is not a proof, as with a policy: it keeps other clients from operating by mistake, and Kafka's own access
    control decides about writing commands.
    """
    if principal != OPERATOR:
        message = (
            "commands on the pipelines need the permission `operate`, which the file of the setting AUTHORIZATION"
            " grants; without that file they are for `modestream pipeline` and for a gateway without keys"
        )
        raise Rejected("not_allowed", message)


def permitted_projects(
    policy: Grants, principal: str | None, act: Permission, scope: Scope | Selector
) -> tuple[str, ...] | None:
    """Return the projects of a scope's boundary in which the principal may do this.

    None: all, also future ones. Grants of single projects never add up to all, nor do those of parts of a project.
    """
    grants = _grants(policy, principal, act)
    return _union(grant.project_id for grant in grants if grant.covers_boundary(scope) and not grant.is_limited)


def narrow_selector(policy: Grants, principal: str | None, selector: Selector) -> Selector:
    """Remove the projects, and values of further fields, that the principal may not read.

    Raises Rejected, `not_allowed`, if nothing is left, or if what is left is more than its grants have.
    """
    grants = [grant for grant in _grants(policy, principal, "read") if grant.covers_boundary(selector)]
    if not grants:
        raise _refused(principal, "read")
    fields = selector.boundary_fields.others(selector.fields())
    narrowed = {name: _narrowed(asked, _union(_of(grant, name) for grant in grants)) for name, asked in fields.items()}
    if not all(values is None or values for values in narrowed.values()):
        raise _refused(principal, "read")
    if any(grant.is_limited for grant in grants):
        # A selector is a product: of what single grants have, it may select more than all of them.
        for combination in product(*(values or (ANY_VALUE,) for values in narrowed.values())):
            asked = dict(zip(narrowed, combination, strict=True))
            if not any(all(admits(_of(grant, name), value) for name, value in asked.items()) for grant in grants):
                names = ", ".join(f"{name} {value}" for name, value in asked.items())
                raise Rejected("not_allowed", f"no grant of yours has {names}: select what one of them has")
    return selector.model_copy(update=narrowed)


def _of(grant: Grant, field: str) -> tuple[str, ...] | None:
    values: tuple[str, ...] | None = getattr(grant, field, None)
    return values


def _narrowed(asked: tuple[str, ...] | None, granted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if asked is None or granted is None:
        return granted if asked is None else asked
    return tuple(value for value in asked if value in granted)


def _grants(policy: Grants, principal: str | None, act: Permission) -> Sequence[Grant]:
    grants = policy.of(principal) if principal is not None else ()
    return [grant for grant in grants if act in grant.may]


def _union(grants: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    distinct: dict[str, None] = {}
    for values in grants:
        if values is None:
            return None
        distinct.update(dict.fromkeys(values))
    return tuple(distinct)


def _refused(principal: str | None, act: Permission) -> Rejected:
    if principal is None:
        return Rejected("not_allowed", f"this deployment requires the header {PRINCIPAL_HEADER!r}")
    shown = principal[:MAX_PRINCIPAL_CHARS]
    return Rejected("not_allowed", f"{shown!r} may not {act} here; grants are in the file of the setting AUTHORIZATION")


SelectorRequest = RetrieveRequest | AssembleRequest | ListRequest | MapRequest


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """`max_scopes`: scopes that one selector may list; `top_k`: hits of one reply."""

    max_scopes: int = 1000
    top_k: int = 100

    def check(self, request: SelectorRequest) -> None:
        """Raise Rejected for a request beyond the limits."""
        listed = {name: len(values) for name, values in request.scope.fields().items() if values is not None}
        asked = prod(listed.values())
        if asked > self.max_scopes:
            message = f"a selector may list at most {self.max_scopes} scopes; this one lists {asked}"
            raise Rejected("selector_refused", message, "scope." + max(listed, key=listed.__getitem__))
        if isinstance(request, RetrieveRequest) and request.top_k > self.top_k:
            raise Rejected("invalid_value", f"top_k is at most {self.top_k}", "top_k")
