"""Layout of vectors in a plane: similar memories are close together."""
