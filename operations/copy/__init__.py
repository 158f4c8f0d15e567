"""The logs of a deployment copied into another one: what is read, in which order, and how it is written."""
