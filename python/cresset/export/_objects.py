"""Objects of C++ classes in exported programs: inputs of the graph, as which their fakes are seen while the program is recorded."""

import contextlib
import importlib

import cresset
from cresset.fx.experimental.proxy_tensor import is_fake_object

from .graph_signature import CustomObjArgument

__all__ = ["argument_of", "fake_attributes", "fake_of", "is_fake_object", "real_of", "takes_objects"]


def fake_of(fake_mode, value):
    """The FakeScriptObject of an object of a C++ class, or of what stands for one in a program."""
    real = real_of(value)
    return importlib.import_module("cresset._library.fake_class_registry").maybe_to_fake_obj(fake_mode, real)


def real_of(value):
    """The object itself."""
    value = value.fake_val if isinstance(value, CustomObjArgument) else value
    return value.real_obj if is_fake_object(value) else value


def argument_of(node, fake):
    """What signatures have of an input or output that is an object; it is the node's value too."""
    node.meta["val"] = found = CustomObjArgument(node.name, fake.script_class_name, fake)
    return found


@contextlib.contextmanager
def fake_attributes(mod, fake_mode):
    """For a block the modules' attributes that are objects of C++ classes are fakes; gives {id of the fake: (fake, paths)}."""
    fakes, held = {}, []
    for path, module in mod.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, cresset.ScriptObject):
                fake, paths = fakes.setdefault(id(value), (fake_of(fake_mode, value), []))
                paths.append(f"{path}.{name}" if path else name)
                held.append((module, name, value, fake))
    for module, name, _, fake in held:
        vars(module)[name] = fake
    try:
        yield {id(fake): (fake, paths) for fake, paths in fakes.values() if is_fake_object(fake)}
    finally:
        for module, name, value, fake in held:
            if vars(module).get(name) is fake:
                vars(module)[name] = value


def takes_objects(schema):
    """Does an operator take objects of C++ classes?"""
    return schema is not None and "__torch__." in str(schema)
