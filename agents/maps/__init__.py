"""Maps: where the memories of a mode lie in a plane."""
