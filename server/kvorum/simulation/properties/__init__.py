"""What must hold in a simulated quorum: checked after every event, on running and stopped nodes."""
