"""The choices that the options of ``kvorum dump-log`` make."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kvorum.cli.dump.arguments import Given, WrongUsageError
from kvorum.cli.dump.coordinator_records import CoordinatorDecoder
from kvorum.cli.dump.decoders import STRING_DECODER, KeyValueDecoder, named_decoder
from kvorum.cli.dump.log_dump import LogDump
from kvorum.cli.dump.log_text import UNLIMITED_BYTES
from kvorum.cli.dump.payloads import Decoder, MetadataDecoder
from kvorum.cli.dump.remote_log_text import decode_remote_log_metadata
from kvorum.internal_topics.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

MESSAGE_BYTES_MAX: Final = 5 * 1024 * 1024
_PRINTING: Final = (
    "print-data-log",
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "value-decoder-class",
    "key-decoder-class",
    "share-group-state-decoder",
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_INTEGER_LIMIT: Final = 2**31


@dataclass(frozen=True)
class DumpOptions:
    """The choice of what is printed of the files, and how.

    Values are read when a file needs them, as by Kafka's tool: a wrong one shows between the lines
    of two files, as a `WrongUsageError`.
    """

    given: Given

    @cached_property
    def decoder(self) -> Decoder | None:
        """The decoder of the contents, in Kafka's order of precedence; None where none print."""
        if not self.given.has(*_PRINTING):
            return None
        if self.given.has("offsets-decoder"):
            return CoordinatorDecoder(CONSUMER_OFFSETS)
        if self.given.has("transaction-log-decoder"):
            return CoordinatorDecoder(TRANSACTION_STATE)
        if self.given.has("cluster-metadata-decoder"):
            return MetadataDecoder()
        if self.given.has("remote-log-metadata-decoder"):
            return decode_remote_log_metadata
        if self.given.has("share-group-state-decoder"):
            return CoordinatorDecoder(SHARE_GROUP_STATE)
        value = named_decoder(self.given.value("value-decoder-class", STRING_DECODER))
        key = named_decoder(self.given.value("key-decoder-class", STRING_DECODER))
        return KeyValueDecoder(key, value)

    @property
    def message_bytes_max(self) -> int:
        """The largest batch that is looked for where an offset index points."""
        return self._size("max-message-size", MESSAGE_BYTES_MAX)

    @property
    def only_verifies_indexes(self) -> bool:
        """Whether the entries of indexes are not printed."""
        return self.given.has("verify-index-only")

    @property
    def only_checks_indexes(self) -> bool:
        """Whether indexes are only checked as at a broker's start."""
        return self.given.has("index-sanity-check")

    def log_dump(self, file_name: str) -> LogDump:
        """Return the printer of one segment or snapshot."""
        return LogDump(
            file_name=file_name,
            is_deep=self.decoder is not None or self.given.has("deep-iteration"),
            decoder=self.decoder,
            skips_metadata=self.given.has("skip-record-metadata"),
            bytes_max=self._size("max-bytes", UNLIMITED_BYTES),
        )

    def _size(self, name: str, default: int) -> int:
        text = self.given.value(name, str(default))
        number = int(text) if _INTEGER.fullmatch(text) else _INTEGER_LIMIT
        if not -_INTEGER_LIMIT <= number < _INTEGER_LIMIT:
            raise WrongUsageError(f"Cannot parse argument '{text}' of option {name}")
        return number
