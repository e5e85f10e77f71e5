"""The first records of a controller that has become active."""

from kvorum.controller.api import ControllerResult
from kvorum.controller.settings import ControllerSettings
from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.configs_image import CLUSTER_RESOURCE
from kvorum.metadata.effective_configs import MIN_INSYNC_REPLICAS, static_min_insync_replicas
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features import ELR_VERSION_FEATURE
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord

BOOTSTRAP_TRANSACTION = "Bootstrap records"
FAILOVER_REASON = "Controller failover"


def activation_records(
    image: MetadataImage, bootstrap: BootstrapMetadata, settings: ControllerSettings
) -> ControllerResult[None]:
    """Return the records that a new active controller writes before it answers a request.

    On an empty log these are the bootstrap records, in a metadata transaction where the level
    has them. A transaction that the previous controller left open is aborted; if it held the
    bootstrap records, they are written again.
    """
    version = image.published.features.metadata_version
    if version is None:
        return _bootstrap_records(image, bootstrap, settings)
    records: list[RecordAndVersion] = []
    if image.transaction is not None:
        records.append(_abort_record(image.transaction.begin_offset, version))
    return ControllerResult(None, tuple(records))


def _bootstrap_records(
    image: MetadataImage, bootstrap: BootstrapMetadata, settings: ControllerSettings
) -> ControllerResult[None]:
    version = bootstrap.metadata_version
    records: list[RecordAndVersion] = []
    if image.transaction is not None:
        records.append(_abort_record(image.transaction.begin_offset, version))
    if version.supports_metadata_transactions:
        records.append((BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION), 0))
    records.extend(bootstrap.records)
    if bootstrap.feature_level(ELR_VERSION_FEATURE) > 0:
        # ELR needs the same min.insync.replicas on all brokers.
        value = str(static_min_insync_replicas(settings.static_configs))
        records.append((ConfigRecord(*CLUSTER_RESOURCE, MIN_INSYNC_REPLICAS, value), 0))
    if version.supports_metadata_transactions:
        records.append((EndTransactionRecord(), 0))
    return ControllerResult(
        None, tuple(records), is_atomic=not version.supports_metadata_transactions
    )


def _abort_record(begin_offset: int, version: MetadataVersion) -> RecordAndVersion:
    if not version.supports_metadata_transactions:
        raise ReplayError(
            f"a metadata transaction is open since offset {begin_offset}, but metadata.version "
            f"{version.text} does not support transactions"
        )
    return AbortTransactionRecord(reason=FAILOVER_REASON), 0
