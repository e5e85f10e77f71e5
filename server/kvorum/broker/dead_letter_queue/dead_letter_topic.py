"""The topics that may be dead-letter queues, by the configuration of groups, brokers and topics."""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from kvorum.broker.dead_letter_queue.dead_letter_queue_error import DeadLetterQueueError
from kvorum.broker.views.config_layers import ConfigLayers
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigValue,
    parse_value,
    read_settings,
)
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.own_values import own_value

GROUP_ENABLE: Final = "errors.deadletterqueue.group.enable"
"""The key of a topic that lets share groups write their dead letters to it."""
AUTO_CREATE: Final = "errors.deadletterqueue.auto.create.topics.enable"
NAME_PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
_TOPIC_NAME: Final = GROUP_CONFIGS["errors.deadletterqueue.topic.name"]
_COPY_RECORD: Final = GROUP_CONFIGS["errors.deadletterqueue.copy.record.enable"]
_OF_KAFKA: Final = "__"


class GroupDeadLetterQueue(NamedTuple):
    """The topic that a group names, empty for none, and whether records are copied to it whole."""

    topic: str
    is_record_copied: bool


def group_dead_letter_queue(group_id: str, configs: ConfigsImage) -> GroupDeadLetterQueue:
    """Return what a group's own configuration says."""
    own = configs.of(ResourceType.GROUP, group_id)
    topic = own_value(_TOPIC_NAME, own)
    is_record_copied = own_value(_COPY_RECORD, own)
    return GroupDeadLetterQueue("" if topic is None else str(topic), is_record_copied is True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterQueueSettings:
    """The values of a broker, which may change while it runs.

    A topic that is not there is created if `is_topic_created`. A queue's name begins with
    `name_prefix`.
    """

    is_topic_created: Annotated[bool, AUTO_CREATE]
    name_prefix: Annotated[str, NAME_PREFIX]


def dead_letter_queue_settings(layers: ConfigLayers) -> DeadLetterQueueSettings:
    """Return the values that hold at the moment."""

    def value_of(key: str) -> ConfigValue:
        effective, *_ = layers.synonyms(key)
        return parse_value(BROKER_CONFIGS[key], effective.value)

    return read_settings(DeadLetterQueueSettings, value_of)


def check_dead_letter_topic(
    name: str, image: MetadataImage, settings: DeadLetterQueueSettings
) -> None:
    """Raise DeadLetterQueueError unless a group's queue may be the topic `name`.

    The topic need not be there, if it may be created.
    """
    if not name:
        raise DeadLetterQueueError("the group has no errors.deadletterqueue.topic.name any more")
    if name.startswith(_OF_KAFKA):
        raise DeadLetterQueueError(f"the name of topic {name} begins with {_OF_KAFKA}")
    if image.topics.by_name(name) is None:
        if not settings.is_topic_created:
            raise DeadLetterQueueError(f"there is no topic {name}, and {AUTO_CREATE} is false")
    elif not _is_dead_letter_queue(name, image):
        raise DeadLetterQueueError(f"{GROUP_ENABLE} is false for topic {name}")
    if not name.startswith(settings.name_prefix):
        raise DeadLetterQueueError(
            f"the name of topic {name} does not begin with {settings.name_prefix}, which is "
            f"{NAME_PREFIX}"
        )


def _is_dead_letter_queue(name: str, image: MetadataImage) -> bool:
    own = image.configs.of(ResourceType.TOPIC, name)
    return own_value(TOPIC_CONFIGS[GROUP_ENABLE], own) is True
