"""Kafka's settings of a deployment's topics, at their creation and as corrected by a worker."""

from collections.abc import Collection
from dataclasses import dataclass

from streams.retention import LogRetention
from streams.settings import Settings
from streams.topics import CHANGELOG, Topics, kept_hours, repaired_settings, topic_configs


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The topics and changelogs of a deployment, and its settings about them."""

    topics: Topics
    changelogs: Collection[str]
    settings: Settings
    retention: LogRetention

    def wanted(self) -> dict[str, dict[str, str]]:
        """Return the settings of all topics by name."""
        configs = topic_configs(self.topics, kept_hours(self.settings))
        named = {topic: {**config, **self._asked_for(topic)} for topic, config in configs.items()}
        return named | {topic: {**CHANGELOG, **self._asked_for(topic)} for topic in self.changelogs}

    def corrected(self) -> dict[str, dict[str, str]]:
        """Return those that a worker corrects: of inputs, which belong to the operator, only requested ones."""
        every = {topic: self._corrected(topic, config) for topic, config in self.wanted().items()}
        return {topic: config for topic, config in every.items() if config}

    def _corrected(self, topic: str, config: dict[str, str]) -> dict[str, str]:
        own = () if topic in self.topics.inputs() else repaired_settings(self.topics, topic)
        return {name: config[name] for name in (*own, *self._asked_for(topic)) if name in config}

    def _asked_for(self, topic: str) -> dict[str, str]:
        if topic in self.changelogs:
            return dict(self.retention.changelog_settings())
        return dict(self.retention.topic_settings(self.topics, topic))
