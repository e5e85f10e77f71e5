"""Operations on groups, whose errors are those that clients of groups know."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

from kvorum.coordinator.append_errors import append_error_to_response_error
from kvorum.coordinator.result import CoordinatorResult
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.context import CoordinatorContext
from kvorum.node.broker.coordinator.runtime import CoordinatorRuntime
from kvorum.node.broker.coordinator.transaction_write import OUTSIDE, TransactionWrite
from kvorum.node.broker.coordinator.write_event import Then
from kvorum.wire.error_codes import ErrorCode

Response = TypeVar("Response")
ErrorMapping: TypeAlias = Callable[[ErrorCode], ErrorCode]
GroupContext: TypeAlias = CoordinatorContext[GroupCoordinatorShard]
GroupOperation: TypeAlias = Callable[[GroupCoordinatorShard, int], CoordinatorResult[Response]]


class GroupOperations:
    """Hands operations to the coordinators of their groups."""

    def __init__(self, runtime: CoordinatorRuntime[GroupCoordinatorShard]) -> None:
        self._runtime = runtime

    def context_for(self, group_id: str) -> GroupContext:
        """Return the coordinator of a group.

        Raises RequestError on another broker, and for a group of another protocol.
        """
        context = self._runtime.context_for(group_id)
        if context.active_shard is not None:
            context.active_shard.state.demand_served(group_id)
        return context

    def write(
        self,
        group_id: str,
        decide: GroupOperation[Response],
        then: Then[Response],
        mapping: ErrorMapping = append_error_to_response_error,
        transaction: TransactionWrite = OUTSIDE,
    ) -> None:
        """Do an operation; call back with its response when everything written is committed.

        An error of the log, which is called back or raised, is one that `mapping` returns for it.
        """
        _write(self.context_for(group_id), decide, then, mapping, transaction)

    def write_unanswered(
        self,
        group_id: str,
        decide: GroupOperation[None],
        then: Callable[[RequestError | None], None],
    ) -> None:
        """Do an operation without a response; call back once it is committed, or has failed.

        Raises RequestError as `write` does.
        """
        self.context_for(group_id).write(decide, then)

    def write_to_partition(
        self, partition: int, decide: GroupOperation[Response], then: Then[Response]
    ) -> None:
        """Do an operation on several groups of a partition, whatever their protocols are."""
        context = self._runtime.context(partition)
        _write(context, decide, then, append_error_to_response_error, OUTSIDE)

    def write_promised(
        self,
        group_id: str,
        promise: JoinPromise | SyncPromise,
        decide: GroupOperation[None],
        refuse: Callable[[RequestError], None],
    ) -> None:
        """Do an operation that may keep its promise later; refuse one that fails before.

        A response may leave before its records are committed: their fate matters no more then.
        """

        def written(result: RequestError | None) -> None:
            if result is not None and not promise.is_kept:
                promise.is_kept = True
                refuse(_mapped(result, append_error_to_response_error))

        try:
            self.context_for(group_id).write(decide, written)
        except RequestError as error:
            written(error)


def _write(
    context: GroupContext,
    decide: GroupOperation[Response],
    then: Then[Response],
    mapping: ErrorMapping,
    transaction: TransactionWrite,
) -> None:
    try:
        context.write(decide, partial(_written, then, mapping), transaction)
    except RequestError as error:
        raise _mapped(error, mapping) from error


def _written(
    then: Then[Response], mapping: ErrorMapping, result: Response | RequestError | None
) -> None:
    assert result is not None
    then(_mapped(result, mapping) if isinstance(result, RequestError) else result)


def _mapped(error: RequestError, mapping: ErrorMapping) -> RequestError:
    code = mapping(error.code)
    return error if code is error.code else RequestError.with_default_message(code)
