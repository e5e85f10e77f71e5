"""The broker role in a process: its listener, and its life with the controller."""
