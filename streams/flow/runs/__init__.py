"""Run records: what is noted of a run, which runs are written, and writing them beside the answers."""
