"""The controller role in a process: ordered requests, periodic tasks, registration."""
