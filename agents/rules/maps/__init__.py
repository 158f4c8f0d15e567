"""Layout of vectors in a plane: what is near in meaning lies near on the map."""
