"""The known differences between Kafka 4.3.1 and 4.4.0 are found in their jars."""

from tests.support.fixtures import JarsOf
from tests.support.kafka.java import Java

from kvorum.codegen.release_diff import definitions_in, differences_of, read_release

OLD, NEW = "4.3.1", "4.4.0"


def test_messages_errors_and_features_of_two_releases(kafka_jars: JarsOf) -> None:
    tables = differences_of(read_release(kafka_jars(OLD)), read_release(kafka_jars(NEW)))
    versions = {row[0]: row[2:] for row in tables["APIs"] if row[1] == "validVersions"}
    assert {name: found for name, found in versions.items() if "Request" in name} == {
        "ApiVersionsRequest (18)": ("0-4", "0-5"),
        "TxnOffsetCommitRequest (28)": ("0-5", "0-6"),
        "DeleteGroupsRequest (42)": ("0-2", "0-3"),
        "StreamsGroupHeartbeatRequest (88)": ("0", "0-1"),
        "StreamsGroupDescribeRequest (89)": ("0", "0-1"),
    }
    assert [row[0] for rows in tables.values() for row in rows if row[1] == "new"] == [
        "StreamsGroupTopologyDescriptionUpdateRequest (93)",
        "StreamsGroupTopologyDescriptionUpdateResponse (93)",
        "UnregisterControllerRequest (94)",
        "UnregisterControllerResponse (94)",
        "AbortedTxn",
        "UnregisterControllerRecord (29)",
        "134",
        "135",
        "136",
    ]
    assert [row[0] for rows in tables.values() for row in rows if row[1] == "gone"] == []
    assert [tuple(row) for row in tables["Features"]] == [
        ("metadata.version", "production level", "30", "33"),
        ("metadata.version", "level 31", "4.4-IV0, unstable", "4.4-IV0, production"),
        ("metadata.version", "level 32", "-", "4.4-IV1, new records, production"),
        ("metadata.version", "level 33", "-", "4.4-IV2, new records, production"),
        ("metadata.version", "level 34", "-", "4.5-IV0, unstable"),
        ("share.version", "production level", "1", "2"),
        ("share.version", "level 2", "-", "4.4-IV0, production"),
    ]


def test_what_the_program_prints_of_a_key(java: Java) -> None:
    told = "\n".join(java.answers("ConfigDefinitions"))
    assert definitions_in(told)["topic"]["max.message.bytes"] == {
        "type": "INT",
        "required": False,
        "default": "1048588",
        "validator": ["Range", 0, None],
        "importance": "MEDIUM",
        "internal": False,
        "mode": "read-only",
        "synonyms": [["message.max.bytes", 1]],
    }
