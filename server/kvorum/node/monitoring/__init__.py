"""The metrics and health of a running server: /metrics, /healthz and /readyz."""
