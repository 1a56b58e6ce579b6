"""Operators of the namespace mkldnn, in Python: `ops` loads this module when one of them is asked for."""

from . import library

_operators = library.Library("mkldnn", "FRAGMENT")
_KINDS = {"bf16": True, "fp16": True, "acl": False}  # the kernels know both types on every processor; Arm's library is not used
for _kind, _answer in _KINDS.items():
    _operators.define(f"_is_mkldnn_{_kind}_supported() -> bool")
    _operators.impl(f"_is_mkldnn_{_kind}_supported", lambda answer=_answer: answer, "CompositeImplicitAutograd")
