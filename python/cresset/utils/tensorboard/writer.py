"""SummaryWriter: scalars, texts, histograms, images and hyperparameters by tag and step."""

import json
import os
import struct
import time
import zlib

import cresset

from ._events import EventFileWriter, block, double, doubles, integer, single

__all__ = ["FileWriter", "SummaryWriter"]


def _number(value):
    return value.item() if hasattr(value, "item") else float(value)


def _tensor(value):
    return value.detach().cpu() if isinstance(value, cresset.Tensor) else cresset.as_tensor(value)


def _value(tag, content, plugin=None, plugin_content=b""):
    """A Summary of one value."""
    metadata = b"" if plugin is None else block(9, block(1, block(1, plugin) + block(2, plugin_content)))
    return block(1, block(1, tag) + metadata + content)


def _text(text):
    return block(8, integer(1, 7) + block(2, block(2, integer(1, 1))) + block(8, text))


def _png(pixels):
    """A PNG file of an uint8 tensor [height, width, 1, 3 or 4 channels]."""
    height, width, channels = pixels.shape
    data = bytes(pixels.contiguous().flatten().tolist())
    rows = b"".join(b"\0" + data[i * width * channels : (i + 1) * width * channels] for i in range(height))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _pixels(image, dataformats):
    """[height, width, channels] in uint8: numbers of other types are taken from 0 to 1."""
    image = _tensor(image)
    formats = dataformats.upper()
    if image.dim() != len(formats):
        raise AssertionError(f"size of tensor: {tuple(image.shape)} does not fit the format {dataformats!r}")
    order = [formats.index(c) for c in "HWC" if c in formats]
    image = image.permute(order)
    image = image.unsqueeze(-1) if "C" not in formats else image
    return image if image.dtype == cresset.uint8 else (image.float() * 255).clamp(0, 255).to(cresset.uint8)


class FileWriter:
    """Summaries into one event file."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        """The folder."""
        return self.event_writer.get_logdir()

    def add_summary(self, summary, global_step=None, walltime=None):
        """Add an encoded summary."""
        self.event_writer.add_event(block(5, summary), global_step, walltime)

    def flush(self):
        self.event_writer.flush()

    def close(self):
        self.event_writer.close()


class SummaryWriter:
    """Writes into `log_dir`, by default runs/<date>_<host><comment>. A context, which closes the file. `global_step` orders what has one tag."""

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            import socket

            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir = os.fspath(log_dir)
        self._arguments = (max_queue, flush_secs, filename_suffix)
        self.file_writer = FileWriter(self.log_dir, *self._arguments)
        self.all_writers = {self.log_dir: self.file_writer}
        if purge_step is not None:
            self.file_writer.event_writer.add_event(block(7, integer(1, 1)), purge_step)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number; `new_style` as a tensor, with `double_precision` in double."""
        number = _number(scalar_value)
        if new_style or double_precision:
            kind, field = (2, double(6, number)) if double_precision else (1, single(5, number))
            content = _value(tag, block(8, integer(1, kind) + field), "scalars")
        else:
            content = _value(tag, single(2, number))
        self.file_writer.add_summary(content, global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one picture: each in a file of its own."""
        for tag, number in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, *self._arguments)
            self.all_writers[folder].add_summary(_value(main_tag, single(2, _number(number))), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """A tensor of float32 or float64."""
        t = _tensor(tensor)
        kind = {cresset.float32: 1, cresset.float64: 2}.get(t.dtype)
        if kind is None:
            t, kind = t.float(), 1
        shape = b"".join(block(2, integer(1, n)) for n in t.shape)
        data = struct.pack(f"<{t.numel()}{'f' if kind == 1 else 'd'}", *t.flatten().tolist())
        self.file_writer.add_summary(_value(tag, block(8, integer(1, kind) + block(2, shape) + block(4, data)), "tensor"), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """The distribution of numbers; ValueError for none. `bins`: their edges or number, else chosen by powers of 1.1."""
        t = _tensor(values).flatten().double()
        if t.numel() == 0:
            raise ValueError("The input has no element.")
        if isinstance(bins, str):
            edge, positive = 1e-12, []
            while edge < 1e20:
                positive.append(edge)
                edge *= 1.1
            edges = cresset.tensor([-e for e in reversed(positive)] + [0.0] + positive, dtype=cresset.float64)
        elif isinstance(bins, int):
            edges = cresset.linspace(t.min().item(), t.max().item() or 1.0, bins + 1, dtype=cresset.float64)
        else:
            edges = _tensor(bins).double()
        counts = cresset.histogram(t, edges).hist
        used = counts.nonzero().flatten()
        first, last = (int(used[0]), int(used[-1])) if len(used) else (0, 0)
        limits, counts = edges[first : last + 2].tolist(), [0.0, *counts[first : last + 1].tolist()]
        histogram = (double(1, t.min().item()) + double(2, t.max().item()) + double(3, t.numel()) + double(4, t.sum().item())
                     + double(5, (t * t).sum().item()) + doubles(6, limits) + doubles(7, counts))  # fmt: skip
        self.file_writer.add_summary(_value(tag, block(5, histogram)), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """A picture: uint8, or numbers from 0 to 1, in the order of `dataformats`."""
        pixels = _pixels(img_tensor, dataformats)
        height, width, channels = pixels.shape
        content = block(4, integer(1, height) + integer(2, width) + integer(3, channels) + block(4, _png(pixels)))
        self.file_writer.add_summary(_value(tag, content), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Several pictures, side by side."""
        images = _tensor(img_tensor)
        at = dataformats.upper().index("N")
        one = dataformats.upper().replace("N", "")
        self.add_image(tag, cresset.cat([_pixels(i, one) for i in images.unbind(at)], 1), global_step, walltime, "HWC")

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text in Markdown."""
        self.file_writer.add_summary(_value(f"{tag}/text_summary", _text(text_string), "text", b"\x08\x00"), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Hyperparameters with the numbers they gave, in a run of its own: as texts and scalars."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        with SummaryWriter(os.path.join(self.log_dir, str(run_name or time.time()))) as run:
            run.add_text("hparams", json.dumps({k: v if isinstance(v, (str, int, float, bool)) else str(v) for k, v in hparam_dict.items()}), global_step)
            for tag, number in metric_dict.items():
                run.add_scalar(tag, number, global_step)

    def _absent(self, name):
        raise NotImplementedError(f"SummaryWriter.{name}: not part of this writer; it writes scalars, tensors, texts, histograms, images and hyperparameters.")

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Raises NotImplementedError. `fx` draws graphs."""
        self._absent("add_graph")

    def add_embedding(self, *args, **kwargs):
        """Raises NotImplementedError."""
        self._absent("add_embedding")

    def add_audio(self, *args, **kwargs):
        """Raises NotImplementedError."""
        self._absent("add_audio")

    def add_video(self, *args, **kwargs):
        """Raises NotImplementedError."""
        self._absent("add_video")

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of Matplotlib, as a picture."""
        canvas = figure.canvas
        canvas.draw()
        self.add_image(tag, cresset.frombuffer(bytearray(bytes(canvas.buffer_rgba())), dtype=cresset.uint8).view(*reversed(canvas.get_width_height()), 4)[..., :3], global_step, walltime, "HWC")

    def flush(self):
        """What was added is in the files."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self):
        """Close the files."""
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.all_writers = {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
