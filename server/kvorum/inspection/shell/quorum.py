"""The metadata of a running quorum: fetched from its leader, as an observer without an id does.

The leader hands out committed records alone, so nothing that was shown is ever taken back.
"""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.folding import fold_snapshot
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.metadata.config_definitions import InvalidConfigError
from kvorum.metadata.errors import MetadataError
from kvorum.quorum_client.client import QuorumClient, QuorumPlan
from kvorum.quorum_client.connection import parse_addresses
from kvorum.quorum_client.errors import ClientOptionError, QuorumError
from kvorum.quorum_client.fetch import LONG_POLL_MS, Fetched, fetch
from kvorum.quorum_client.snapshot_copy import copy_snapshot
from kvorum.security.client_settings import ClientSecuritySettings, UnservedMechanismError
from kvorum.security.errors import InvalidOAuthSettingsError, InvalidSslSettingsError
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.wire.errors import WireError
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

RETRY_TIMEOUT_S: Final = 20.0
"""The time for which a leader is looked for: an election takes a few seconds."""
_OPTION_OF_THE_STREAM: Final = re.compile(
    r"option 'controllers'|, or raise option 'retryTimeoutMs'|option 'kafka\.([\w.]+)'"
)

_INVALID: Final = (
    InvalidConfigError,
    InvalidJaasConfigError,
    InvalidOAuthSettingsError,
    InvalidSslSettingsError,
    UnservedMechanismError,
)


class LiveQuorum:
    """The state of a quorum's log, as far as it was fetched; use it in one thread at a time.

    All its methods raise `MetadataSourceError`.
    """

    def __init__(self, controllers: str, properties: Mapping[str, str]) -> None:
        """Prepare for `controllers`, a list of host:port; `properties` are those of a client."""
        try:
            addresses = parse_addresses(controllers)
            security = ClientSecuritySettings.from_texts(properties)
        except ClientOptionError as error:
            raise MetadataSourceError(_in_words_of_the_tool(error)) from error
        except _INVALID as error:
            raise MetadataSourceError(f"--command-config: {error}") from error
        plan = QuorumPlan(addresses, None, 0, RETRY_TIMEOUT_S, None, security)
        self._client = QuorumClient(plan)
        self.folded = FoldedLog()

    def catch_up(self) -> None:
        """Fetch until everything that is committed by now has been read."""
        goal: int | None = None
        while goal is None or self.folded.end.offset < goal:
            fetched = self._step(wait_ms=0)
            goal = fetched.high_watermark if goal is None else goal

    def follow(self) -> bool:
        """Wait a moment for new records, and return whether there were some."""
        before = self.folded.end
        self._step(wait_ms=LONG_POLL_MS)
        return self.folded.end != before

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _step(self, *, wait_ms: int) -> Fetched:
        """Read what one answer has: batches, or the name of a snapshot to begin with."""
        try:
            fetched = fetch(self._client, self.folded.end, wait_ms=wait_ms)
            if fetched.snapshot is not None:
                self._load(fetched.snapshot)
            folded = self.folded
            for batch in fetched.batches:
                folded = folded.add(batch, start_offset=folded.end.offset)
            self.folded = folded
        except QuorumError as error:
            raise MetadataSourceError(_in_words_of_the_tool(error)) from error
        except (WireError, MetadataError) as error:
            place = f"{self._client.leader}: behind offset {self.folded.end.offset}"
            raise MetadataSourceError(f"{place}: {error}") from error
        return fetched

    def _load(self, snapshot: OffsetAndEpoch) -> None:
        """Begin again with a snapshot; with nothing changed where the leader has a later one."""
        try:
            with tempfile.TemporaryDirectory(prefix="kvorum-shell-") as name:
                file = Path(name) / "snapshot"
                if copy_snapshot(self._client, snapshot, file):
                    self.folded = fold_snapshot(file, snapshot)
        except OSError as error:
            raise MetadataSourceError(
                f"the leader's snapshot cannot be copied into a temporary file: {error}"
            ) from error


def _in_words_of_the_tool(error: ClientOptionError | QuorumError) -> str:
    """Return an error's text, which names options of the stream, with those of the shell."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] is not None:
            return f"{match[1]} in the file of --command-config"
        return "--bootstrap-controller" if "controllers" in match[0] else ""

    return _OPTION_OF_THE_STREAM.sub(replacement, str(error))
