"""A classic group: its members, states and generations, and its record."""
