"""The records that a worker agrees on with its deployment before it serves: release, settings, embedder of `general`.

Enters: the settings of this worker, and the topic `service`. Leaves: the deployment's record, and records of what is
new; or the end of the process, with the reason. Guaranteed: a worker of a release that may not join writes no record.
"""

from collections.abc import Collection

from schemas.internal.service import ServiceRecord
from streams.adapters.kafka.service_entries import (
    KafkaGeneralEmbedderLog,
    KafkaModelLog,
    KafkaReleaseLog,
    ServiceEntries,
)
from streams.adapters.kafka.service_log import KafkaServiceLog
from streams.bootstrap.general_mode import GeneralMode
from streams.bootstrap.release_guard import agree_on_release, check_release
from streams.bootstrap.service_guard import agree_on_service, service_record
from streams.flow.support.backoff import until_available
from streams.flow.support.publisher import Publisher
from streams.observability.metrics import Meters
from streams.settings import Settings


class DeploymentRecords:
    """The records in the topic `service` of one deployment; waits for Kafka however long it takes."""

    def __init__(self, settings: Settings, publisher: Publisher, meters: Meters) -> None:
        self._settings = settings
        self._publisher = publisher
        self._meters = meters
        self._entries = ServiceEntries(settings, publisher, meters)
        self.models = KafkaModelLog(self._entries)
        """The models that the deployment's vectors were made with."""

    async def agree(self, created: Collection[str], general: GeneralMode) -> ServiceRecord:
        """Return the deployment's record; `created` names the topics that this worker has just created."""
        releases, service = KafkaReleaseLog(self._entries), KafkaServiceLog(self._settings, self._publisher, created)
        if service.topic not in created:
            # Before anything is written: the kinds of records of this release would end older workers.
            await check_release(releases)
        own = service_record(self._settings)
        agreed = await until_available(lambda: agree_on_service(own, service), "kafka", self._meters)
        await agree_on_release(releases)
        await general.agree(KafkaGeneralEmbedderLog(self._entries))
        return agreed
