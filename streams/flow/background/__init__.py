"""Work beside the events: arrival of partitions, the language model queue, re-embedding, schedules."""
