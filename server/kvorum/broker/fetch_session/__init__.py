"""Incremental fetch sessions (KIP-227): what clients asked for and were sent.

`FetchManager.new_context` says which partitions a request is about, and turns what was read of them
into the response.
"""
