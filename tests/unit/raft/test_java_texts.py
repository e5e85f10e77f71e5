"""Keys, endpoints and offsets are printed as Java prints them."""

import pytest

from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft.voter_changes.steps import endpoints_text, key_text, keys_text, offset_text
from kvorum.wire.uuid_text import uuid_from_text

SETS = [
    "1:uwNZvy01y1gWmBpDnKAc4A",
    "2:ctdYNG10jFKynUaOwKjXLw 1:fSjZFPHp28p2Ovab04kJRw 3:RxvCF1iC5EHCjMrI1s4tFA",
    (
        "2:4tSNSFFtETo41RjRUyW_OA 3:4kXdkwY5bTVwgNE4URe5bg 5:4aoJWzMwhtJIfHLVqi1WzQ "
        "4:ZJOMxajOXYD-psGCqjuB2Q 1:OCBoVHZhfM7roECCu0WHYg"
    ),
    (
        "5:TUWjUHlNjBsgHHGfHUA3sA 7:M9h2xrk5B8YIuz0mUnronQ 2:gwiFiH-HBFcTw98bjbVS-w "
        "4:c2NO6nlMeldaw-3Zue1n-g 6:WYivxZcTr8mxO8N2oFrizw 1:P3F75Q9mRv-X89QDfVFo4g "
        "3:CkfxqlZlj0yu3YRH1kKOhA"
    ),
]
"""Sets of keys, each in the order in which a `Set<ReplicaKey>` of voters was printed."""


def keys_of(line: str) -> list[ReplicaKey]:
    words = [word.partition(":") for word in line.split()]
    return [ReplicaKey(int(node_id), uuid_from_text(text)) for node_id, _, text in words]


@pytest.mark.parametrize("line", SETS)
def test_keys_come_in_the_order_of_a_java_set(line: str) -> None:
    keys = keys_of(line)
    assert keys_text(sorted(keys, key=lambda key: key.id)) == f"[{', '.join(map(key_text, keys))}]"


def test_a_key() -> None:
    (key,) = keys_of(SETS[0])
    assert key_text(key) == "ReplicaKey(id=1, directoryId=uwNZvy01y1gWmBpDnKAc4A)"
    assert key_text(ReplicaKey(7)) == "ReplicaKey(id=7, directoryId=<undefined>)"


def test_endpoints() -> None:
    expected = "Endpoints(endpoints={ListenerName(OTHER)=host/<unresolved>:9})"
    assert endpoints_text((Endpoint("OTHER", "host", 9),)) == expected
    assert endpoints_text(()) == "Endpoints(endpoints={})"


def test_an_offset() -> None:
    assert offset_text(None) == "Optional.empty"
    assert offset_text(7) == "Optional[7]"
