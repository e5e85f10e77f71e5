"""Changes of dynamic configuration."""
