"""Background work: arrival of partitions, the language model queue, re-embedding, schedules."""
