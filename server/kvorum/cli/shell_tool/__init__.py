"""The parts of ``kvorum shell``: its arguments, where metadata comes from, and the terminal."""
