"""What is fast, measured beside what a user would pick instead. Run it with `python -m benchmarks`."""
