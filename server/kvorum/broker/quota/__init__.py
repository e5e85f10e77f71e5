"""Client quotas: what a client may send, fetch and ask for, and how long it waits beyond that."""
