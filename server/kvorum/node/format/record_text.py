"""Bootstrap metadata as Kafka's storage tool prints it."""

from __future__ import annotations

from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord


def bootstrap_metadata_text(bootstrap: BootstrapMetadata) -> str:
    """Return the line of the storage tool that shows a new cluster's first records."""
    records = ", ".join(map(_record_text, bootstrap.records))
    return (
        f"BootstrapMetadata(records=[{records}], "
        f"metadataVersionLevel={int(bootstrap.metadata_version)}, source={bootstrap.source})"
    )


def _record_text(record: RecordAndVersion) -> str:
    message, version = record
    match message:
        case FeatureLevelRecord():
            fields = f"name={_quoted(message.name)}, featureLevel={message.feature_level}"
        case UserScramCredentialRecord():
            fields = (
                f"name={_quoted(message.name)}, mechanism={message.mechanism}, "
                f"salt={_bytes_text(message.salt)}, storedKey={_bytes_text(message.stored_key)}, "
                f"serverKey={_bytes_text(message.server_key)}, iterations={message.iterations}"
            )
        case _:
            raise TypeError(f"{type(message).__name__} is no bootstrap record")
    return f"ApiMessageAndVersion({type(message).__name__}({fields}) at version {version})"


def _quoted(text: str) -> str:
    return f"'{text}'"


def _bytes_text(data: bytes) -> str:
    """Return bytes as Java prints a byte array: signed numbers."""
    return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in data)}]"
