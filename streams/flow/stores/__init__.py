"""The stores of a worker by partition, and the views that agents take."""
