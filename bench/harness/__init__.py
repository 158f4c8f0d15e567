"""What benchmarks share: the system under test, processes, texts, reports."""
