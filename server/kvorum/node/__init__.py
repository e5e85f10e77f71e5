"""The process: configuration, listeners, handlers, the raft driver, the two roles."""
