"""The log of a partition, as every log has it: segments, indexes, epochs, recovery."""
