"""The requests of share groups' members and administrators (KIP-932)."""
