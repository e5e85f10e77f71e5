"""The records that gave a partition its leader, its in-sync replicas and its replicas."""
