"""The gateway's connection to the service, over Kafka."""
