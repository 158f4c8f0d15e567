"""The client over Kafka: one producer, one reply partition, replies by their correlation ids."""
