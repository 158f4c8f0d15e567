"""Which users a caller may see, by its grants and by what the deployment has."""

from collections.abc import Iterable
from itertools import chain, product, takewhile

from modestream_client.boundary import boundary_key

from gateway.service.access import may_see
from gateway.service.boundaries import Boundaries
from gateway.service.calls import Caller
from schemas.state.policies import Grant


def granted_users(caller: Caller, boundaries: Boundaries) -> list[str] | None:
    """Return the names of the users that the caller may see, also of such that are not there; None for all."""
    if caller.own_user is not None:
        return [caller.own_user] if may_see(caller, caller.own_user) else []
    if caller.grants is None:
        return None
    readable = [grant for grant in caller.grants if "read" in grant.may]
    if any(grant.covers_every_user() for grant in readable):
        return None
    return sorted({name for grant in readable for name in _names_of(grant, boundaries)})


def _names_of(grant: Grant, boundaries: Boundaries) -> Iterable[str]:
    """Return the users that a grant names; where it names some fields alone, those that are there."""
    fields = grant.boundary_fields
    values = [getattr(grant, field) for field in fields]
    named = list(product(*takewhile(lambda one: one is not None, values)))
    if None not in values:
        return [fields.name(dict(zip(fields, one, strict=True))) for one in named]
    # Only of several fields can some be named and others not: the name is the key then.
    prefixes = ["".join(f"{boundary_key([value])}/" for value in some) for some in named]
    return filter(grant.covers_user, chain.from_iterable(map(boundaries.keys, prefixes)))
