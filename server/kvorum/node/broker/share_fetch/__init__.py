"""The records that members of share groups acquire from partitions that a broker leads (KIP-932).

The manager keeps the share partitions, each loaded from its share coordinator and written back to
it; a fetch waits until it can acquire enough of them.
"""
