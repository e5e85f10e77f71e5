"""Kafka's wire protocol: messages, headers, frames and record batches. No I/O.

The package is usable on its own: it needs `fastcrc`, and a compression library only for batches
that use one.
"""
