"""The way of a coordinator's records into its partition (CoordinatorPartitionWriter)."""

import logging

from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.batch import CoordinatorBatch
from kvorum.node.broker.coordinator.settings import CoordinatorSettings
from kvorum.node.runtime import Runtime
from kvorum.storage.errors import StorageError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.log.verification_state import TransactionAppend
from kvorum.storage.topic_log.log_validator import RecordValidationError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import RecordBatch

_log = logging.getLogger(__name__)


class ForeignRecordsError(RequestError):
    """Another writer has written to the partition; the shard has not seen those records."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR.default_message)


class CoordinatorPartitionWriter:
    """Appends to one partition; `is_writing` is True meanwhile."""

    def __init__(
        self, partition: Partition, runtime: Runtime, settings: CoordinatorSettings
    ) -> None:
        self._partition = partition
        self._runtime = runtime
        self._settings = settings
        self.is_writing = False

    @property
    def batch_bytes_max(self) -> int:
        """The size that a batch of the topic may have."""
        log = self._partition.log
        return log.config.max_message_bytes

    def append_batch(self, batch: CoordinatorBatch, now_ms: int) -> None:
        """Append the records of a batch; see `append`."""
        built = batch.build(self._settings.compression, self._settings.base_sequence)
        self.append(built, now_ms, batch.transaction.append, offset=batch.base_offset)

    def append(
        self, batch: RecordBatch, now_ms: int, transaction: TransactionAppend, *, offset: int
    ) -> None:
        """Append a batch that is to get an offset; raises RequestError if it is not in the log.

        If others have written to the partition meanwhile, it is there at another offset, and the
        error is ForeignRecordsError.
        """
        self.is_writing = True
        try:
            info = self._partition.append_records_to_leader(
                batch,
                required_acks=self._settings.required_acks,
                wall_ms=now_ms,
                now_ms=self._runtime.monotonic_ms(),
                origin=AppendOrigin.COORDINATOR,
                transaction=transaction,
            )
        except (LeaderRefusesError, RecordValidationError, ProducerError) as error:
            raise RequestError.with_default_message(error.code) from error
        except StorageError as error:
            _log.error("%s", error)
            raise RequestError.with_default_message(ErrorCode.KAFKA_STORAGE_ERROR) from error
        finally:
            self.is_writing = False
        if info.first_offset != offset:
            raise ForeignRecordsError
