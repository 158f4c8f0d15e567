"""Training of the models shipped with the project; not needed to run it."""
