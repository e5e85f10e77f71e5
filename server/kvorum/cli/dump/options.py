"""The options of ``kvorum dump-log``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from kvorum.cli.dump.coordinator_records import CoordinatorDecoder
from kvorum.cli.dump.log_text import UNLIMITED_BYTES, LogDump
from kvorum.cli.dump.payloads import Decoder, decode_cluster_metadata, decode_text
from kvorum.internal_topics.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

_FLAGS = (
    ("--print-data-log", "print the contents of records"),
    ("--deep-iteration", "print records, not only batches"),
    ("--verify-index-only", "compare indexes with their logs without printing them"),
    ("--index-sanity-check", "check indexes as a broker does at start, without printing them"),
    ("--cluster-metadata-decoder", "read contents as records of the cluster's metadata"),
    ("--offsets-decoder", "read contents as records of __consumer_offsets"),
    ("--transaction-log-decoder", "read contents as records of __transaction_state"),
    ("--share-group-state-decoder", "read contents as records of __share_group_state"),
    ("--skip-record-metadata", "print only the contents of records"),
)
_MESSAGE_BYTES_MAX = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The choice of what is printed of the files, and how."""

    decoder: Decoder | None
    is_deep: bool
    skips_metadata: bool
    bytes_max: int
    only_verifies_indexes: bool
    only_checks_indexes: bool

    def log_dump(self, file_name: str) -> LogDump:
        """Return the printer of one segment or snapshot."""
        return LogDump(
            file_name=file_name,
            is_deep=self.is_deep,
            decoder=self.decoder,
            skips_metadata=self.skips_metadata,
            bytes_max=self.bytes_max,
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of kafka-dump-log that kvorum has."""
    parser.add_argument(
        "--files",
        required=True,
        help="the files, comma separated: .log, .checkpoint, .index, "
        ".timeindex, .txnindex, .snapshot",
    )
    for flag, text in _FLAGS:
        parser.add_argument(flag, action="store_true", help=text)
    parser.add_argument(
        "--max-bytes",
        type=int,
        default=UNLIMITED_BYTES,
        metavar="SIZE",
        help="read at most this many bytes of a log",
    )
    parser.add_argument(
        "--max-message-size",
        type=int,
        default=_MESSAGE_BYTES_MAX,
        metavar="SIZE",
        help="accepted as by kafka-dump-log, without effect: batches of any size are read",
    )


def read_options(arguments: argparse.Namespace) -> DumpOptions:
    """Return the options of a parsed command line; any decoder turns printing of contents on."""
    decoder = _decoder(arguments)
    return DumpOptions(
        decoder=decoder,
        is_deep=arguments.deep_iteration or decoder is not None,
        skips_metadata=arguments.skip_record_metadata,
        bytes_max=arguments.max_bytes,
        only_verifies_indexes=arguments.verify_index_only,
        only_checks_indexes=arguments.index_sanity_check,
    )


def _decoder(arguments: argparse.Namespace) -> Decoder | None:
    """Return the first decoder of the command line, in Kafka's order of precedence."""
    if arguments.offsets_decoder:
        return CoordinatorDecoder(CONSUMER_OFFSETS)
    if arguments.transaction_log_decoder:
        return CoordinatorDecoder(TRANSACTION_STATE)
    if arguments.cluster_metadata_decoder:
        return decode_cluster_metadata
    if arguments.share_group_state_decoder:
        return CoordinatorDecoder(SHARE_GROUP_STATE)
    return decode_text if arguments.print_data_log else None
