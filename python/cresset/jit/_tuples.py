"""What `_single`, `_pair`, `_triple` and `_quadruple` of nn.modules.utils are in scripts, whose types cannot depend on a value: lists."""

from typing import List

from ._overloads import declare
from .annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4


@declare
def _single(value: BroadcastingList1[int]) -> List[int]: ...
@declare
def _single(value: BroadcastingList1[float]) -> List[float]: ...
def _single(value):
    return value


@declare
def _pair(value: BroadcastingList2[int]) -> List[int]: ...
@declare
def _pair(value: BroadcastingList2[float]) -> List[float]: ...
def _pair(value):
    return value


@declare
def _triple(value: BroadcastingList3[int]) -> List[int]: ...
@declare
def _triple(value: BroadcastingList3[float]) -> List[float]: ...
def _triple(value):
    return value


@declare
def _quadruple(value: BroadcastingList4[int]) -> List[int]: ...
@declare
def _quadruple(value: BroadcastingList4[float]) -> List[float]: ...
def _quadruple(value):
    return value
