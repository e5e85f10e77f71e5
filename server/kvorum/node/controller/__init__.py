"""The controller role in a process: its requests in order, its periodic work, its registration."""
