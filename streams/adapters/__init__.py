"""The real parts behind the ports: models, indexes, Kafka. Vendor errors end here, translated."""
