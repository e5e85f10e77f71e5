"""Changes of the voter set: one voter at a time, as one record of the log (KIP-853)."""
