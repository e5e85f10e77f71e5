"""ElectLeaders (43): elects preferred or unclean leaders of partitions."""

from collections.abc import Iterable, Iterator
from typing import Final

from kvorum.controller.api import (
    PIECE_RECORDS,
    ControllerApi,
    ControllerResult,
    Pieces,
    check_record_count,
    own_timeout_ms,
)
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.partition_change_builder import Election
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kvorum.wire.messages.elect_leaders import (
    ElectLeadersResponsePartitionResult as PartitionResult,
)
from kvorum.wire.messages.elect_leaders import (
    ElectLeadersResponseReplicaElectionResult as ReplicaElectionResult,
)

ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, context: ControllerRequestContext
) -> Pieces[ControllerResult[ElectLeadersResponse]]:
    """Elect a leader for each partition in the request, or for all if it contains null.

    In the second case the response omits partitions that need no election. This is done in pieces,
    and ends with the first election above the limit of one request.
    """
    election = ELECTIONS.get(request.election_type)
    if election is None:
        raise invalid_request(f"Unknown election type {request.election_type}")
    rules = ClusterRules(image, context.settings)
    records: list[RecordAndVersion] = []
    results: list[ReplicaElectionResult] = []
    wants_all = request.topic_partitions is None
    until_stop = PIECE_RECORDS
    for topic, indexes in _wanted(image, request):
        partition_results: list[PartitionResult] = []
        for index in indexes:
            if not until_stop:
                until_stop = PIECE_RECORDS
                yield
            until_stop -= 1
            try:
                records.append(_elect(rules, topic, index, election))
                partition_results.append(PartitionResult(partition_id=index, error_message=None))
            except RequestError as error:
                if wants_all and error.code == ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                partition_results.append(_failure(index, error))
            check_record_count(records)
        results.append(ReplicaElectionResult(topic=topic, partition_result=partition_results))
    return ControllerResult(
        ElectLeadersResponse(replica_election_results=results), tuple(records), is_atomic=False
    )


def _wanted(
    image: MetadataImage, request: ElectLeadersRequest
) -> Iterator[tuple[str, Iterable[int]]]:
    if request.topic_partitions is None:
        for topic in image.topics.sorted_topics():
            yield topic.name, sorted(topic.partitions)
        return
    for wanted in request.topic_partitions:
        yield wanted.topic, wanted.partitions


def _failure(index: int, error: RequestError) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)


def _elect(
    rules: ClusterRules, topic_name: str, index: int, election: Election
) -> RecordAndVersion:
    """Return the record of the election; raise `RequestError` without an election."""
    topic = rules.image.topics.by_name(topic_name)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_name}-{index}"
        )
    is_preferred = election is Election.PREFERRED
    if partition.has_preferred_leader if is_preferred else partition.has_leader:
        raise RequestError.with_default_message(ErrorCode.ELECTION_NOT_NEEDED)
    change = rules.change(topic, index)
    change.election = election
    record = change.record()
    if record is None:
        raise RequestError.with_default_message(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if is_preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    return record


def _refuse(
    request: ElectLeadersRequest, error: RequestError, api_version: int
) -> ElectLeadersResponse:
    """Refuse ElectLeaders; version 0 has error codes for partitions only."""
    is_shown = api_version > 0
    response = ElectLeadersResponse(error_code=error.code if is_shown else ErrorCode.NONE)
    for topic in request.topic_partitions or ():
        results = [_failure(index, error) for index in topic.partitions]
        response.replica_election_results.append(
            ReplicaElectionResult(topic=topic.topic, partition_result=results)
        )
    return response


API: Final = ControllerApi(
    request=ElectLeadersRequest,
    permission=AclOperation.ALTER,
    decide=elect_leaders,
    refuse=_refuse,
    timeout_ms=own_timeout_ms,
)
