"""Kafka's rule for the log directories of a broker that get no new replicas (KIP-1066)."""

from typing import Final

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.settings import ValueOf

CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
ALL_DIRECTORIES: Final = "*"
"""The value of ``cordoned.log.dirs`` that names all directories."""


def check_cordoned_directories(value_of: ValueOf) -> None:
    """Raise InvalidConfigError unless each cordoned directory is one of the broker's."""
    cordoned = value_of(CORDONED_LOG_DIRS)
    directories = value_of("log.dirs") or value_of("log.dir")
    assert isinstance(cordoned, tuple)
    assert isinstance(directories, tuple)
    if ALL_DIRECTORIES in cordoned:
        if len(cordoned) > 1:
            raise InvalidConfigError(
                "When cordoned.log.dirs is set to *, it must not contain other values"
            )
        return
    if missing := [each for each in cordoned if each not in directories]:
        raise InvalidConfigError(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing "
            f"entries : {', '.join(map(str, missing))}"
        )
