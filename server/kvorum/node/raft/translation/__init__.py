"""Between Kafka's requests and responses, in any version, and the core's own messages.

Each module has four functions for its API. `read_request` gives the core's request, or, where the
cluster id or the shape is wrong, the response to refuse it with at once. `write_answer` makes the
response out of the core's answer. `write_request` and `read_response` are the same from the other
side; a response that is an error as a whole, or has not the shape it must have, is a RequestFailed.
"""
