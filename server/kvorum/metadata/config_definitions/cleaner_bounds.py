"""Kafka's rule for the memory of a broker's cleaner, which its threads share (KafkaConfig)."""

from typing import Final

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.settings import ValueOf

CLEANER_THREADS: Final = "log.cleaner.threads"
_DEDUPE_BUFFER_SIZE: Final = "log.cleaner.dedupe.buffer.size"
_MIB: Final = 1024 * 1024


def check_cleaner_memory(value_of: ValueOf) -> None:
    """Raise InvalidConfigError unless each thread has more than 1 MiB for the keys of a pass."""
    size_bytes, thread_count = value_of(_DEDUPE_BUFFER_SIZE), value_of(CLEANER_THREADS)
    assert isinstance(size_bytes, int)
    assert isinstance(thread_count, int)
    if size_bytes // max(1, thread_count) <= _MIB:
        raise InvalidConfigError(f"{_DEDUPE_BUFFER_SIZE} must be at least 1MB per cleaner thread.")
