"""What the log tells: one line for each event that an operator would want."""
