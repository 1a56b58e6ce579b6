"""Parts of programs that a compiler would make once: `compiler.nested_compile_region` by its older name."""

from cresset.compiler import nested_compile_region

__all__ = ["mark_compile_region"]


def mark_compile_region(fn=None, options=None, max_reuse_entries=8, reuse_hash_fn=None):
    """`compiler.nested_compile_region`."""
    return nested_compile_region(fn, options=options, max_reuse_entries=max_reuse_entries, reuse_hash_fn=reuse_hash_fn)
