"""Files that TensorBoard shows: SummaryWriter. They are written without the package tensorboard."""

from ._events import EventFileWriter, RecordWriter
from .writer import FileWriter, SummaryWriter

__all__ = ["EventFileWriter", "FileWriter", "RecordWriter", "SummaryWriter"]
