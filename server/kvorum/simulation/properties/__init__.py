"""The properties of a simulated quorum, checked after every event on running and stopped nodes."""
