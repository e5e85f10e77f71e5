"""The broker role in a process: lifecycle, forwarding, and the creation of missing topics."""
