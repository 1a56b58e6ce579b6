"""Checkpoints that many ranks write and read together, in PyTorch's format. docs/guide/distributed-checkpoint.md."""

from . import _version, metadata, planner, state_dict, storage, utils  # noqa: F401  reached as attributes
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader",
    "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan", "LoadPlanner", "Metadata", "ReadItem", "SavePlan",
    "SavePlanner", "StorageReader", "StorageWriter", "TensorStorageMetadata", "WriteItem", "async_save", "load", "load_state_dict", "save",
    "save_state_dict",
]
