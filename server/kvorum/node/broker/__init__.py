"""The broker role in a process: lifecycle, forwarding, replicas, and the creation of topics."""
