"""Numbers for the memory and the tensors of a profile, from the addresses that its events tell and the order in which they do."""

from .. import _profiler_c as types


def _tensors(values):
    for value in values:
        if isinstance(value, list):
            yield from _tensors(value)
        elif isinstance(value, types._TensorMetadata):
            yield value


def _mentions(roots):
    """(time, fields of an allocation or a tensor), in order. What is known of modules was asked for when they were called first, what is known of
    optimizers after their first step."""
    found, waiting, seen = [], list(reversed(roots)), set()
    while waiting:
        node = waiting.pop()
        waiting += reversed(node.children)
        fields = node.extra_fields
        if node.tag is types._EventType.Allocation:
            found.append((node.start_time_ns, fields))
        elif node.tag is types._EventType.TorchOp:
            found += ((node.start_time_ns, tensor) for tensor in _tensors(fields.inputs))
        elif node.tag is types._EventType.PyCall:
            if fields.optimizer and id(fields.optimizer) not in seen:
                seen.add(id(fields.optimizer))
                held = [[parameter, gradient, [value for _, value in state]] for parameter, gradient, state in fields.optimizer.parameters]
                found += ((node.end_time_ns, tensor) for tensor in _tensors(held))
            if fields.module and id(fields.module) not in seen:
                seen.add(id(fields.module))
                found += ((node.start_time_ns, tensor) for tensor in _tensors([[p, gradient] for _, p, gradient in fields.module.parameters]))
    return sorted(found, key=lambda mention: mention[0])


class _Groups:
    """Disjoint sets that grow together (Tarjan, "Efficiency of a Good But Not Linear Set Union Algorithm", 1975, without ranks)."""

    def __init__(self):
        self._parents = {}

    def find(self, member):
        """Who stands for the group of member."""
        path = []
        while (parent := self._parents.setdefault(member, member)) != member:
            path.append(member)
            member = parent
        for passed in path:
            self._parents[passed] = member
        return member

    def join(self, one, other):
        """Make one group of two."""
        self._parents[self.find(one)] = self.find(other)


def identify(roots):
    """Sets `allocation_id` and `id` of the allocations and tensors below roots. A place in memory has the same number from its allocation, or where
    it is first seen, until it is freed; memory that one tensor had at different times, and all that share it, has one id."""
    live, groups, last = {}, _Groups(), 0
    mentions = [fields for _, fields in _mentions(roots)]
    for fields in mentions:
        is_tensor = isinstance(fields, types._TensorMetadata)
        place = (fields.device, fields.storage_data_ptr if is_tensor else fields.ptr)
        if place[1] is None:
            continue
        if place not in live or (not is_tensor and fields.alloc_size > 0):
            last += 1
            live[place] = last
        fields.allocation_id = live[place] if is_tensor or fields.alloc_size > 0 else live.pop(place)
        if is_tensor:
            # An empty storage lies nowhere: the tensor is what it was.
            groups.join(("tensor", fields.impl_ptr), ("memory", fields.allocation_id) if place[1] else ("tensor", fields.impl_ptr))
    numbers = {}
    for fields in mentions:
        if fields.allocation_id is not None:
            lies_nowhere = isinstance(fields, types._TensorMetadata) and not fields.storage_data_ptr
            group = groups.find(("tensor", fields.impl_ptr) if lies_nowhere else ("memory", fields.allocation_id))
            fields.id = numbers.setdefault(group, len(numbers))
