"""Groups of the consumer protocol (KIP-848): heartbeats, targets, and what each member may own."""
