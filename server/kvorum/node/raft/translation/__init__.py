"""Translations between Kafka's requests and responses, in any version, and the core's messages.

Each module has four functions for its API. `read_request` returns the core's request, or, if the
cluster id or the shape is wrong, the response that refuses it. `write_answer` returns the response
for a response of the core. `write_request` and `read_response` are the same for the sender; a
response with a top-level error, or of the wrong shape, becomes a RequestFailed.
"""
