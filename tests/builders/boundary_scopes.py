"""Scope models of deployments with a boundary of their own, and declarations that are none."""

from typing import ClassVar

from pydantic import BaseModel

from schemas.scopes import Scope


class TenantScope(BaseModel):
    """Users of organizations: two of one name in two organizations have nothing in common."""

    boundary_fields: ClassVar[tuple[str, ...]] = ("organization_id", "user_id")

    organization_id: str
    user_id: str
    project_id: str = "default"


class TenantAgentScope(TenantScope):
    agent_id: str = "main"


class OrganizationScope(BaseModel):
    """Organizations without users."""

    boundary_fields: ClassVar[tuple[str, ...]] = ("organization_id",)

    organization_id: str


class SharedScope(Scope):
    """Organizations whose users share what is remembered."""

    boundary_fields: ClassVar[tuple[str, ...]] = ("organization_id",)  # type: ignore[assignment]  # plain, as users write it

    organization_id: str


class WithEmptyBoundary(BaseModel):
    boundary_fields: ClassVar[tuple[str, ...]] = ()
    user_id: str


class WithOneString(BaseModel):
    boundary_fields: ClassVar[str] = "user_id"
    user_id: str


class WithBoundaryAsField(BaseModel):
    boundary_fields: tuple[str, ...] = ("user_id",)
    user_id: str


class WithUnknownBoundary(BaseModel):
    boundary_fields: ClassVar[tuple[str, ...]] = ("organization_id",)
    user_id: str


class WithBoundaryTwice(BaseModel):
    boundary_fields: ClassVar[tuple[str, ...]] = ("user_id", "user_id")
    user_id: str


class WithProjectAsBoundary(BaseModel):
    boundary_fields: ClassVar[tuple[str, ...]] = ("user_id", "project_id")
    user_id: str
    project_id: str = "default"
