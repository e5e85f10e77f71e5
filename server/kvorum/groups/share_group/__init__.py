"""Groups of the share protocol (KIP-932)."""
