"""What several ranks have is written by one of them."""

import dataclasses

__all__ = ["dedup_save_plans"]


def _size_of(item):
    return item.tensor_storage_size() or 1


def dedup_save_plans(all_plans, save_to_lowest_rank=False):
    """The plans with each item in one of them: the one with the least to write so far, or that of the lowest rank."""
    ranks_of = {}
    items = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            ranks = ranks_of.setdefault(item.index, [])
            if rank not in ranks:
                ranks.append(rank)
            items.setdefault(item.index, item)
    load = [0] * len(all_plans)
    keeper = {}
    for index, ranks in ranks_of.items():
        chosen = ranks[0] if save_to_lowest_rank else min(ranks, key=lambda rank: load[rank])
        keeper[index] = chosen
        load[chosen] += _size_of(items[index])
    kept = []
    for rank, plan in enumerate(all_plans):
        seen, mine = set(), []
        for item in plan.items:
            if keeper[item.index] == rank and item.index not in seen:
                seen.add(item.index)
                mine.append(item)
        kept.append(dataclasses.replace(plan, items=mine))
    return kept
