"""The APIs that a broker checks before it forwards them: one module for each."""
