"""Operators of the namespace mkldnn, in Python: `ops` loads this module when one of them is asked for."""

from . import library

_operators = library.Library("mkldnn", "FRAGMENT")
for _question in ("_is_mkldnn_bf16_supported", "_is_mkldnn_fp16_supported"):  # the kernels know both types on every processor
    _operators.define(f"{_question}() -> bool")
    _operators.impl(_question, lambda: True, "CompositeImplicitAutograd")
