"""Commands of `python -m jitcore`, one module each."""
