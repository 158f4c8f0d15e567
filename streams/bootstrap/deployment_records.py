"""The records that a worker agrees on with its deployment before it serves.

These are release, settings, setup, and the embedder of `general`.

Enters: the settings of this worker, and the topic `service`. Leaves: the deployment's record, with new entries; or the
end of the process, with the reason. Guaranteed: a worker of a refused release writes nothing.
"""

import sys
from collections.abc import Collection

from schemas.internal.service import SERVICE_KEY, ServiceRecord, Setup
from streams.adapters.kafka.deployment_log import KafkaDeploymentLog
from streams.bootstrap.general_mode import GeneralMode
from streams.bootstrap.release_guard import agree_on_release, check_release
from streams.bootstrap.service_guard import agree_on_service, service_record
from streams.bootstrap.setup_guard import agree_on_setup
from streams.bootstrap.worker_topics import CREATE_THEM, VALIDATES
from streams.settings import Settings


async def agree_on_records(
    settings: Settings, log: KafkaDeploymentLog, created: Collection[str], general: GeneralMode, setup: Setup
) -> ServiceRecord:
    """Return the deployment's record; `created` names the topics that this worker has just created.

    `setup` is the worker's own.
    """
    log.is_new = log.topic in created
    if settings.provision == "validate" and SERVICE_KEY not in await log.values():
        sys.exit(f"{VALIDATES}: {log.topic} has no record of a deployment; {CREATE_THEM}")
    # Before any write: the kinds of records of this release would end older releases.
    await check_release(log)
    agreed = await agree_on_service(service_record(settings), log)
    await agree_on_release(log)
    await agree_on_setup(setup, log)
    await general.agree(log)
    return agreed
