"""Create a topic on a broker with nothing but kvorum.wire: `create_topic.py HOST:PORT NAME`."""

import socket
import struct
import sys

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame, with_size
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

VERSION = 7
TIMEOUT_S = 30


def main(address: str, name: str) -> None:
    host, _, port = address.rpartition(":")
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=3, replication_factor=1)
    frame = encode_request_frame(
        CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_S * 1000),
        version=VERSION,
        correlation_id=1,
        client_id="wheel",
    )
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
        connection.sendall(with_size(frame))
        with connection.makefile("rb") as reader:
            (size,) = struct.unpack(">i", reader.read(4))
            answer = reader.read(size)
    _, response = decode_response_frame(
        answer, response_class=CreateTopicsResponse, version=VERSION
    )
    for made in response.topics:
        print(made.name, made.num_partitions, ErrorCode(made.error_code).name)


main(*sys.argv[1:])
