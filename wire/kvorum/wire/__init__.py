"""Kafka's wire protocol: messages, headers, frames and record batches. No I/O.

Usable alone: nothing but `crc32c` beside it, and the compression library when a batch asks for one.
"""
