"""A good request for each API of the data plane, and of all coordinators."""

import base64
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from kvorum.wire.records import RecordData, build_batch

GROUP: Final = "limits-group"
CONSUMER_GROUP: Final = "limits-consumers"
MEMBER: Final = "nobody"
TRANSACTIONAL_ID: Final = "limits-transactions"
SHARE_GROUP: Final = "limits-shares"
OTHER_SHARE_GROUP: Final = "limits-shares-without-members"
FETCHED_SHARE_GROUP: Final = "limits-shares-with-records"
_PRODUCER: Final = {"transactionalId": TRANSACTIONAL_ID, "producerId": 5, "producerEpoch": 0}
_BATCH: Final = base64.b64encode(build_batch([RecordData(b"value", b"key", 1, ())])).decode()
_PROTOCOL: Final = base64.b64encode(b"\0\0").decode()
_Value: TypeAlias = "list[_Value] | dict[str, _Value] | str | int | None"
PARTITIONS: Final = frozenset({"partitions", "partitionData", "partitionIndexes"})
"""The names of lists of partitions in requests."""
INDEXES: Final = frozenset({"index", "partition", "partitionIndex"})
"""The names of the number of a partition in requests."""


def with_another_partition(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with the next partition, too, wherever it has one."""
    changed = {key: _changed(value) for key, value in body.items()}
    for key in PARTITIONS & body.keys():
        changed[key] = [*body[key], *map(_next_partition, body[key])]
    return changed


def _changed(value: _Value) -> _Value:
    if isinstance(value, list):
        return [_changed(each) for each in value]
    return with_another_partition(value) if isinstance(value, dict) else value


def _next_partition(partition: Any) -> Any:
    if isinstance(partition, int):
        return partition + 1
    return {key: each + 1 if key in INDEXES else each for key, each in partition.items()}


def bodies(topic: str, *, topic_id: str, shared_topic_id: str) -> dict[str, Mapping[str, Any]]:
    """Return a good request for each API by its name, about partition 0 of a topic.

    Those of a share group's member are about another topic, and come next in a session that has
    begun.
    Fields that a version does not have are left out when it is encoded.
    """
    by_name = {"name": topic}

    def topics(*partitions: object, key: str = "partitions", **names: str) -> list[object]:
        return [{**names, key: list(partitions)}]

    def shares(partition: object) -> dict[str, object]:
        return {"groupId": SHARE_GROUP, "topics": topics(partition, topicId=topic_id)}

    in_session = {
        "groupId": FETCHED_SHARE_GROUP,
        "memberId": MEMBER,
        "shareSessionEpoch": 1,
        "isRenewAck": False,
        "topics": topics(
            {
                "partitionIndex": 0,
                "acknowledgementBatches": [
                    {"firstOffset": 0, "lastOffset": 2, "acknowledgeTypes": [1]}
                ],
            },
            topicId=shared_topic_id,
        ),
    }

    return {
        "Produce": {
            "transactionalId": None,
            "acks": -1,
            "timeoutMs": 1000,
            "topicData": topics(
                {"index": 0, "records": _BATCH}, key="partitionData", name=topic, topicId=topic_id
            ),
        },
        "Fetch": {
            "maxWaitMs": 0,
            "minBytes": 0,
            "maxBytes": 5000,
            "isolationLevel": 0,
            "sessionId": 0,
            "sessionEpoch": -1,
            "topics": topics(
                {
                    "partition": 0,
                    "currentLeaderEpoch": -1,
                    "fetchOffset": 0,
                    "lastFetchedEpoch": -1,
                    "logStartOffset": -1,
                    "partitionMaxBytes": 1000,
                },
                topic=topic,
                topicId=topic_id,
            ),
            "forgottenTopicsData": topics(0, topic=topic, topicId=topic_id),
            "rackId": "",
            "replicaState": {"replicaId": -1, "replicaEpoch": -1},
        },
        "ListOffsets": {
            "replicaId": -1,
            "isolationLevel": 0,
            "topics": topics(
                {"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": -1}, **by_name
            ),
            "timeoutMs": 1000,
        },
        "OffsetForLeaderEpoch": {
            "replicaId": -1,
            "topics": topics(
                {"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": 0}, topic=topic
            ),
        },
        "DescribeProducers": {"topics": topics(0, key="partitionIndexes", **by_name)},
        "DeleteRecords": {
            "topics": topics({"partitionIndex": 0, "offset": 0}, **by_name),
            "timeoutMs": 1000,
        },
        "FindCoordinator": {"key": GROUP, "keyType": 0, "coordinatorKeys": [GROUP]},
        "JoinGroup": {
            "groupId": GROUP,
            "sessionTimeoutMs": 10_000,
            "rebalanceTimeoutMs": 10,
            "memberId": MEMBER,
            "groupInstanceId": None,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": _PROTOCOL}],
            "reason": None,
        },
        "SyncGroup": {
            "groupId": GROUP,
            "generationId": 1,
            "memberId": MEMBER,
            "groupInstanceId": None,
            "protocolType": "consumer",
            "protocolName": "range",
            "assignments": [{"memberId": MEMBER, "assignment": _PROTOCOL}],
        },
        "Heartbeat": {"groupId": GROUP, "generationId": 1, "memberId": MEMBER},
        "LeaveGroup": {
            "groupId": GROUP,
            "memberId": MEMBER,
            "members": [{"memberId": MEMBER, "groupInstanceId": None, "reason": None}],
        },
        "OffsetCommit": {
            "groupId": GROUP,
            "generationIdOrMemberEpoch": -1,
            "memberId": "",
            "groupInstanceId": None,
            "topics": topics(
                {
                    "partitionIndex": 0,
                    "committedOffset": 3,
                    "committedLeaderEpoch": -1,
                    "committedMetadata": "",
                },
                name=topic,
                topicId=topic_id,
            ),
        },
        "OffsetFetch": {
            "groupId": GROUP,
            "topics": topics(0, key="partitionIndexes", **by_name),
            "groups": [
                {
                    "groupId": GROUP,
                    "memberId": None,
                    "memberEpoch": -1,
                    "topics": topics(0, key="partitionIndexes", name=topic, topicId=topic_id),
                }
            ],
            "requireStable": False,
        },
        "OffsetDelete": {"groupId": GROUP, "topics": topics({"partitionIndex": 0}, **by_name)},
        "DescribeGroups": {"groups": [GROUP], "includeAuthorizedOperations": False},
        "ConsumerGroupHeartbeat": {
            "groupId": CONSUMER_GROUP,
            "memberId": MEMBER,
            "memberEpoch": 0,
            "instanceId": None,
            "rackId": None,
            "rebalanceTimeoutMs": 300_000,
            "subscribedTopicNames": [topic],
            "subscribedTopicRegex": None,
            "serverAssignor": None,
            "topicPartitions": [],
        },
        "ConsumerGroupDescribe": {"groupIds": [GROUP], "includeAuthorizedOperations": False},
        "ShareGroupHeartbeat": {
            "groupId": SHARE_GROUP,
            "memberId": MEMBER,
            "memberEpoch": 0,
            "rackId": None,
            "subscribedTopicNames": [topic],
        },
        "ShareGroupDescribe": {"groupIds": [GROUP], "includeAuthorizedOperations": False},
        "ShareFetch": {
            **in_session,
            "maxWaitMs": 200,
            "minBytes": 1,
            "maxBytes": 5000,
            "maxRecords": 2,
            "batchSize": 1,
            "shareAcquireMode": 0,
            "forgottenTopicsData": topics(1, topicId=shared_topic_id),
        },
        "ShareAcknowledge": in_session,
        "DescribeShareGroupOffsets": {
            "groups": [{"groupId": OTHER_SHARE_GROUP, "topics": topics(0, topicName=topic)}]
        },
        "AlterShareGroupOffsets": {
            "groupId": OTHER_SHARE_GROUP,
            "topics": topics({"partitionIndex": 0, "startOffset": 0}, topicName=topic),
        },
        "DeleteShareGroupOffsets": {
            "groupId": OTHER_SHARE_GROUP,
            "topics": [{"topicName": topic}],
        },
        "ListGroups": {"statesFilter": [], "typesFilter": []},
        "DeleteGroups": {"groupsNames": ["limits-none"]},
        "InitProducerId": {
            "transactionalId": None,
            "transactionTimeoutMs": 1000,
            "producerId": -1,
            "producerEpoch": -1,
        },
        "AddPartitionsToTxn": {
            "transactions": [
                {
                    **_PRODUCER,
                    "verifyOnly": False,
                    "topics": topics(0, **by_name),
                }
            ],
            "v3AndBelowTransactionalId": TRANSACTIONAL_ID,
            "v3AndBelowProducerId": 5,
            "v3AndBelowProducerEpoch": 0,
            "v3AndBelowTopics": topics(0, **by_name),
        },
        "AddOffsetsToTxn": {**_PRODUCER, "groupId": GROUP},
        "EndTxn": {**_PRODUCER, "committed": True},
        "DescribeTransactions": {"transactionalIds": [TRANSACTIONAL_ID]},
        "ListTransactions": {
            "stateFilters": [],
            "producerIdFilters": [],
            "durationFilter": -1,
            "transactionalIdPattern": None,
        },
        "InitializeShareGroupState": shares({"partition": 0, "stateEpoch": 0, "startOffset": 0}),
        "ReadShareGroupState": shares({"partition": 0, "leaderEpoch": 0}),
        "WriteShareGroupState": shares(
            {
                "partition": 0,
                "stateEpoch": 0,
                "leaderEpoch": 0,
                "startOffset": 0,
                "deliveryCompleteCount": 0,
                "stateBatches": [
                    {"firstOffset": 0, "lastOffset": 2, "deliveryState": 2, "deliveryCount": 1}
                ],
            }
        ),
        "DeleteShareGroupState": shares({"partition": 0}),
        "ReadShareGroupStateSummary": shares({"partition": 0, "leaderEpoch": 0}),
        "DescribeLogDirs": {"topics": topics(0, topic=topic)},
        "AlterReplicaLogDirs": {"dirs": [{"path": "/nowhere", "topics": topics(0, **by_name)}]},
        "WriteTxnMarkers": {
            "markers": [
                {
                    "producerId": 5,
                    "producerEpoch": 0,
                    "transactionResult": False,
                    "topics": topics(0, key="partitionIndexes", **by_name),
                    "coordinatorEpoch": 0,
                }
            ]
        },
    }
