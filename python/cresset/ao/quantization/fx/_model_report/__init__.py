"""Reports about a prepared model: what its data and its settings say about how to quantize it."""
