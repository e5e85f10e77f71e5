"""How the set of voters changes: one voter at a time, as one record of the log (KIP-853)."""
