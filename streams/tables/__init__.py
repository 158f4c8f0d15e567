"""The tables behind the agents' ports."""
