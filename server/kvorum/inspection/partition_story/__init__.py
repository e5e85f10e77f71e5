"""Why a partition has its leader, its in-sync replicas and its replicas: the records behind it."""
