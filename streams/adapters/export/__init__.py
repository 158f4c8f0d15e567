"""Makes the model files: ONNX exports from installed weights. Runs as a program at the first start."""
