"""The sizes of blocks of zeros where a layer has none of its own."""

import threading

__all__ = ["LinearBlockSparsePattern"]


def _is_valid_linear_block_sparse_pattern(row_block_size, col_block_size):
    return (row_block_size, col_block_size) in ((1, 4), (8, 1))


class LinearBlockSparsePattern:
    """`with LinearBlockSparsePattern(rows, columns):` sets the sizes, (1, 4) or (8, 1), that `block_size()` gives."""

    rlock = threading.RLock()
    row_block_size, col_block_size = 1, 4
    prev_row_block_size, prev_col_block_size = 1, 4

    def __init__(self, row_block_size=1, col_block_size=4):
        if not _is_valid_linear_block_sparse_pattern(row_block_size, col_block_size):
            raise AssertionError(f"Invalid linear block sparse pattern: row_block_size={row_block_size}, col_block_size={col_block_size}")
        kind = LinearBlockSparsePattern
        kind.rlock.acquire()
        kind.prev_row_block_size, kind.prev_col_block_size = kind.row_block_size, kind.col_block_size
        kind.row_block_size, kind.col_block_size = row_block_size, col_block_size

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, backtrace):
        kind = LinearBlockSparsePattern
        kind.row_block_size, kind.col_block_size = kind.prev_row_block_size, kind.prev_col_block_size
        kind.rlock.release()

    @staticmethod
    def block_size():
        """(rows, columns)"""
        return LinearBlockSparsePattern.row_block_size, LinearBlockSparsePattern.col_block_size
