"""The handlers of requests, a module for each API, and the registry that lists what is served."""
