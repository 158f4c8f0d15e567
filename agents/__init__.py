"""Who decides: one verb a file. No Kafka, no network, no file; the outside is reached through `ports` alone."""
