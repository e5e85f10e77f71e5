"""The sub-commands of ``kvorum storage``, one module each."""
