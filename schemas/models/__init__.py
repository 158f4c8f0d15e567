"""Inputs and outputs of models: vectors, embedders, language model profiles."""
