"""Parts of tensors that several ranks have are written by the first of them."""

import dataclasses

from .planner import WriteItemType

__all__ = ["dedup_tensors"]


def dedup_tensors(all_plans):
    """The plans, each tensor's chunk in the first that has it; bytes stay where they are."""
    seen, kept = set(), []
    for plan in all_plans:
        mine = []
        for item in plan.items:
            if item.type == WriteItemType.BYTE_IO or item.index not in seen:
                mine.append(item)
            if item.type != WriteItemType.BYTE_IO:
                seen.add(item.index)
        kept.append(dataclasses.replace(plan, items=mine))
    return kept
