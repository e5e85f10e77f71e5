"""Bytes that are no request, after which a node ends the connection."""

import struct

from kvorum.wire.api_keys import ApiKey

CUT_OFF = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(506),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "zeros": bytes(400),
    "negative size": struct.pack(">i", -1),
    "lowest size": struct.pack(">i", -(2**31)),
    "highest size": struct.pack(">i", 2**31 - 1),
    "no header": struct.pack(">i", 0),
    "half a header": struct.pack(">ih", 2, ApiKey.API_VERSIONS),
    "unknown key": struct.pack(">ihhih", 10, 4711, 0, 1, -1),
    "negative key": struct.pack(">ihhih", 10, -1, 0, 1, -1),
    "unknown version": struct.pack(">ihhih", 10, ApiKey.CREATE_TOPICS, 99, 1, -1),
    "negative version": struct.pack(">ihhih", 10, ApiKey.CREATE_TOPICS, -1, 1, -1),
    "body cut short": struct.pack(">ihhihih", 16, ApiKey.CREATE_TOPICS, 2, 1, -1, 3, 9),
    "array of 2^31-1": struct.pack(">ihhihi", 14, ApiKey.CREATE_TOPICS, 2, 1, -1, 2**31 - 1),
    "array below null": struct.pack(">ihhihi", 14, ApiKey.CREATE_TOPICS, 2, 1, -1, -7),
    "client id beyond the end": struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, 32767),
    "endless varint": struct.pack(">ihhihB", 21, ApiKey.CREATE_TOPICS, 7, 1, -1, 0) + b"\xff" * 10,
}
