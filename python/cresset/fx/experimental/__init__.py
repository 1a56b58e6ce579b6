"""Tracing below the functions of the package (proxy_tensor), and other things whose interface may change."""
