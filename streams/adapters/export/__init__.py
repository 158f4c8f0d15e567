"""Exports ONNX models from the weights in installed packages: `python -m streams.adapters.export`.

A program of its own, started by the embedder's process when an export is missing; the worker never imports it.
"""
