"""The way of dead letters to the topics of their groups (KIP-1191)."""
