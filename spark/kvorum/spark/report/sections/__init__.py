"""The sections of a cluster's page, one module each."""
