"""The log directories of a broker that get no new replicas (``cordoned.log.dirs``, KIP-1066)."""

from typing import cast

from kvorum.metadata.config_definitions import ALL_DIRECTORIES, BROKER_CONFIGS, CORDONED_LOG_DIRS
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.own_values import own_value
from kvorum.node.config import NodeConfig


def cordoned_log_dirs(config: NodeConfig, image: MetadataImage) -> frozenset[str]:
    """Return the entries of ``log.dirs`` that are cordoned now.

    A dynamic value of this broker counts in place of that in its properties, unless it is invalid.
    """
    own = image.configs.of(ResourceType.BROKER, str(config.node_id))
    named = own_value(BROKER_CONFIGS[CORDONED_LOG_DIRS], own)
    if named is None:
        named = config.broker.cordoned_log_directories
    directories = cast("tuple[str, ...]", named)
    if ALL_DIRECTORIES in directories:
        return frozenset(config.log_directories)
    return frozenset(directories) & frozenset(config.log_directories)
