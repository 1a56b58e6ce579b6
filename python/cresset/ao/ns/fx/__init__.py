"""Measures of how far a quantized model is from the one it came from: `utils`."""
