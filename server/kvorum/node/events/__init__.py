"""The log lines of a node: one for each event that matters to an operator."""
