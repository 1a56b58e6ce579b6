"""The pickles that bytecode stands in: plain values, devices, and tensors whose elements lie beside them."""

import struct

import cresset

__all__ = ["TypedList", "pickled", "read_plain"]

_STORAGES = {
    cresset.float64: "DoubleStorage", cresset.float32: "FloatStorage", cresset.float16: "HalfStorage", cresset.bfloat16: "BFloat16Storage",
    cresset.int64: "LongStorage", cresset.int32: "IntStorage", cresset.int16: "ShortStorage", cresset.int8: "CharStorage",
    cresset.uint8: "ByteStorage", cresset.bool: "BoolStorage", cresset.complex64: "ComplexFloatStorage", cresset.complex128: "ComplexDoubleStorage",
}  # fmt: skip


# Lists that have functions of their own, by the type of their elements.
_BUILDERS = {"int": "build_intlist", "float": "build_doublelist", "bool": "build_boollist", "Tensor": "build_tensorlist"}


class TypedList:
    """A list or dictionary with its type, which its elements need not say."""

    def __init__(self, value, of, text):
        self.value, self.of, self.text = value, of, text


class _Pickle:
    """Writes protocol 2. `keep(bytes)` puts the elements of a tensor somewhere, and says under which name."""

    def __init__(self, keep):
        self.out, self._keep = bytearray(b"\x80\x02"), keep

    def _global(self, module, name):
        self.out += f"c{module}\n{name}\n".encode()

    def put(self, value):
        """One value. TypeError for a type that has no form."""
        out = self.out
        if value is None or isinstance(value, bool):
            out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self._int(value)
        elif isinstance(value, float):
            out += b"G" + struct.pack(">d", value)
        elif isinstance(value, complex):
            self._global("builtins", "complex")
            self.put((value.real, value.imag))
            out += b"R"
        elif isinstance(value, str):
            text = value.encode("utf-8", "surrogatepass")
            out += b"X" + struct.pack("<I", len(text)) + text
        elif isinstance(value, cresset.device):
            self._global("torch", "device")
            self.put((value.type,) if value.index is None else (value.type, value.index))
            out += b"R"
        elif isinstance(value, cresset.Tensor):
            self._tensor(value)
        else:
            self._container(value)

    def _int(self, value):
        if -(2**31) <= value < 2**31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def _container(self, value):
        out = self.out
        if isinstance(value, tuple):
            out += b"("
            for item in value:
                self.put(item)
            out += b"t"
        elif isinstance(value, TypedList):
            builder = _BUILDERS.get(value.of)
            self._global("torch.jit._pickle", builder or "restore_type_tag")
            self.put((value.value,) if builder else (value.value, value.text))
            out += b"R"
        elif isinstance(value, list):
            out += b"]("
            for item in value:
                self.put(item)
            out += b"e"
        elif isinstance(value, dict):
            out += b"}("
            for key, item in value.items():
                self.put(key)
                self.put(item)
            out += b"u"
        else:
            raise TypeError(f"_save_for_lite_interpreter: a constant of type {type(value).__name__} has no form in bytecode. Save it with jit.save.")

    def _tensor(self, tensor):
        if tensor.layout is not cresset.strided or tensor.dtype not in _STORAGES:
            raise TypeError(
                f"_save_for_lite_interpreter: a constant tensor must be strided and of a plain dtype; given: {tensor.layout}, {tensor.dtype}. "
                "Make it a buffer of the module."
            )
        held = tensor.detach().cpu().contiguous()
        number = held.numel()
        self._global("torch._utils", "_rebuild_tensor_v2")
        self.out += b"(("
        self.put("storage")
        self._global("torch", _STORAGES[held.dtype])
        self.put(self._keep(held))
        self.put(str(tensor.device))
        self.put(number)
        self.out += b"tQ"
        for part in (0, tuple(held.shape), tuple(held.stride()), tensor.requires_grad):
            self.put(part)
        self._global("collections", "OrderedDict")
        self.out += b")RtR"


def pickled(value, keep):
    """The pickle of a value; `keep(tensor)` stores the elements of a contiguous tensor and gives the name of their record."""
    writer = _Pickle(keep)
    writer.put(value)
    return bytes(writer.out + b".")


def read_plain(data):
    """What a pickle holds, with (name, arguments) in place of all that is not plain: nothing of the file is called."""
    import io
    import pickle

    class Reader(pickle.Unpickler):
        def persistent_load(self, pid):
            return ("storage", pid)

        def find_class(self, module, name):
            class Named:
                def __new__(cls, *args):
                    made = object.__new__(cls)
                    made.name, made.args, made.state = f"{module}.{name}", args, None
                    return made

                def __setstate__(self, state):
                    self.state = state

            return Named

    return Reader(io.BytesIO(data)).load()
