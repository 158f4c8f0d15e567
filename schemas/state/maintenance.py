"""Scheduled maintenance: which tasks there are, and how often they run."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

MaintenanceJob = Literal["reconcile", "retry_failed", "verify"]

MAINTENANCE_JOBS: tuple[MaintenanceJob, ...] = get_args(MaintenanceJob)
"""Jobs of each user, in the order in which they run."""

MaintenanceTask = Literal[MaintenanceJob, "backup"]

Hours = Annotated[float, Field(gt=0, allow_inf_nan=False)]

Schedule = Mapping[MaintenanceTask, Hours]
"""Hours between two runs of each scheduled task."""
