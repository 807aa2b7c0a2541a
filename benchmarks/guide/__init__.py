"""Which model for what, measured: `python -m benchmarks.guide` writes the tables of docs/choosing.md."""
