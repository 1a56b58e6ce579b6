"""The reader or writer of a checkpoint's name."""

__all__ = []


def _storage_setup(storage, checkpoint_id, reader=False):
    """`storage`, told of the checkpoint, or the one that takes such a name. RuntimeError without either."""
    from .filesystem import FileSystemReader, FileSystemWriter

    if storage is not None:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    kind = FileSystemReader if reader else FileSystemWriter
    if kind.validate_checkpoint_id(checkpoint_id):
        made = kind(checkpoint_id)
        made.reset(checkpoint_id)
        return made
    raise RuntimeError(f"Cannot detect which StorageReader or StorageWriter to use. Please specify the storage_reader/storage_writer. ({checkpoint_id})")
