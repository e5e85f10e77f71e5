"""The log directories of a broker that get no new replicas (``cordoned.log.dirs``, KIP-1066)."""

from collections.abc import Collection
from contextlib import suppress
from typing import Final

from kvorum.metadata.config_definitions import BROKER_CONFIGS, InvalidConfigError, parse_value
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.config import NodeConfig

CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
ALL_DIRECTORIES: Final = "*"


def cordoned_log_dirs(config: NodeConfig, image: MetadataImage) -> frozenset[str]:
    """Return the entries of ``log.dirs`` that are cordoned now.

    A dynamic value of this broker counts in place of that in its properties, unless it is invalid.
    """
    named: Collection[str] = config.broker.cordoned_log_directories
    text = image.configs.of(ResourceType.BROKER, str(config.node_id)).get(CORDONED_LOG_DIRS)
    if text is not None:
        with suppress(InvalidConfigError):
            value = parse_value(BROKER_CONFIGS[CORDONED_LOG_DIRS], text)
            assert isinstance(value, tuple)
            named = value
    if ALL_DIRECTORIES in named:
        return frozenset(config.log_directories)
    return frozenset(named) & frozenset(config.log_directories)
