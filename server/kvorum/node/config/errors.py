"""The only error of this package."""

from collections.abc import Generator
from contextlib import contextmanager

from kvorum.metadata.config_definitions import InvalidConfigError


class ConfigError(ValueError):
    """A node cannot run with this configuration; the text is one line for the user."""


@contextmanager
def config_errors() -> Generator[None]:
    """Turn a refused value into a ConfigError."""
    try:
        yield
    except InvalidConfigError as error:
        raise ConfigError(error.message) from error


def require(condition: object, message: str) -> None:
    """Raise ConfigError with `message` unless `condition` holds."""
    if not condition:
        raise ConfigError(message)
