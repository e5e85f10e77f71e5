"""Security of a cluster's listener for clients, made on the spot, and the clients' settings."""
