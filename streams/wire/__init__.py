"""The wire contract in Kafka: partitions, relocated records, reply addresses, dead letters. Pure."""
