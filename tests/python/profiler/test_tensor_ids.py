"""What a profile knows of the tensors of its calls: addresses, and numbers that follow memory and tensors through time. The numbers are those that
PyTorch's profiler gives."""

import gc

import cresset
from cresset.profiler import _utils, profile

parts = cresset._C._profiler


def nodes(prof):
    return sorted(_utils.traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()), key=lambda n: n.start_time_ns)


def inputs(prof, name):
    return next(n for n in nodes(prof) if n.name == name).extra_fields.inputs


def allocations(run):
    gc.collect()
    with profile(profile_memory=True, record_shapes=True) as prof:
        run()
        gc.collect()
    found = [n.extra_fields for n in nodes(prof) if n.tag is parts._EventType.Allocation]
    return [(f.id, f.allocation_id, f.alloc_size > 0) for f in found]


def test_addresses_and_kinds():
    x, sparse = cresset.ones(2, 3), cresset.eye(2).to_sparse()
    with profile(record_shapes=True) as prof:
        cresset.stack((x, x.t().contiguous().t()))
        sparse.neg()
    (first, second), dim = inputs(prof, "aten::stack")
    assert (first.impl_ptr, first.storage_data_ptr, first.device, first.layout) == (x._cdata, x.data_ptr(), x.device, cresset.strided)
    assert first.sizes == second.sizes == [2, 3] and (first.strides, second.strides, dim) == ([3, 1], [1, 2], 0) and second.id != first.id
    (given,) = inputs(prof, "aten::neg")
    assert given.layout is cresset.sparse_coo and given.storage_data_ptr is None and given.id is None


def test_views_share_an_id_and_resizing_keeps_it():
    a, c, d = cresset.randn(4, 3), cresset.randn(4, 1), cresset.randn(4, 3)
    b = a.view(1, 12)
    with profile(profile_memory=True, record_shapes=True) as prof:
        a + c
        b * c
        cresset.relu(a.resize_(128, 129))
        d.sin()
        c.set_(d.untyped_storage())
        c.cos()
    (of_a, of_c, *_), (of_b, again), (resized,) = (inputs(prof, "aten::" + name) for name in ("add", "mul", "relu"))
    assert of_a.storage_data_ptr == of_b.storage_data_ptr and of_a.impl_ptr != of_b.impl_ptr and of_a.id == of_b.id
    assert (of_c.impl_ptr, of_c.storage_data_ptr, of_c.id) == (again.impl_ptr, again.storage_data_ptr, again.id)
    assert resized.impl_ptr == of_a.impl_ptr and resized.storage_data_ptr != of_a.storage_data_ptr and resized.id == of_a.id
    (of_d,), (moved,) = inputs(prof, "aten::sin"), inputs(prof, "aten::cos")
    assert of_d.storage_data_ptr == moved.storage_data_ptr and of_c.id == of_d.id == moved.id


def test_storages_that_a_tensor_had_are_one():
    def run(empty_between):
        x = cresset.ones(1)
        if empty_between:
            x.set_()
        x.set_(cresset.ones(1).untyped_storage())
        x.view_as(x)

    assert allocations(lambda: run(False)) == [(0, 1, True), (0, 2, True), (0, 1, False), (0, 2, False)]
    assert allocations(lambda: run(True)) == [(0, 1, True), (0, 1, False), (0, 2, True), (0, 2, False)]


def test_no_two_tensors_have_one_address():
    with profile(profile_memory=True, record_shapes=True) as prof:
        for _ in range(100):
            cresset.ones(1).neg()
    given = [n.extra_fields.inputs[0] for n in nodes(prof) if n.name == "aten::neg"]
    assert len({t.impl_ptr for t in given}) == len({t.allocation_id for t in given}) == len({t.id for t in given}) == 100


def test_modules_and_optimizers_know_the_same_tensors():
    model = cresset.nn.Linear(2, 1)
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(2):
        with profile(with_stack=True, profile_memory=True, record_shapes=True) as prof:
            x = cresset.ones(1, 2)
            x.sin()
            model(x).backward()
            optimizer.step()
            optimizer.state[model.weight]["momentum_buffer"].cos()
            model.weight.grad.tan()
        (of_x,), (momentum,), (gradient,) = (inputs(prof, "aten::" + name) for name in ("sin", "cos", "tan"))
        assert len({of_x.id, momentum.id, gradient.id}) == 3
        given, weight, _ = inputs(prof, "aten::linear")
        module = next(n for n in nodes(prof) if n.name == "nn.Module: Linear_0").extra_fields.module
        behind = next(n for n in nodes(prof) if "_optimizer_step_code" in n.name).extra_fields.optimizer
        name, held, held_gradient = module.parameters[0]
        assert given.id == of_x.id and name == "weight" and held.id == weight.id
        assert (held_gradient and held_gradient.id) == (gradient.id if step else None)  # what the module held when it was called
        parameter, its_gradient, state = behind.parameters[0]
        assert (parameter.id, its_gradient.id) == (weight.id, gradient.id) and [(n, t.id) for n, t in state] == [("momentum_buffer", momentum.id)]
