"""Names that few programs use do what they do in PyTorch 2.13."""

import copy
import importlib
import typing

import pytest

import cresset
import cresset.nn.functional as F
from cresset.autograd.function import FunctionCtx, NestedIOFunction
from cresset.utils.checkpoint import GraphExecGroup, checkpoint


def test_a_ctx_made_by_hand_keeps_what_it_is_told():
    class Double(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            ctx.set_materialize_grads(False)
            assert isinstance(ctx, FunctionCtx)
            return x

    ctx, x = FunctionCtx(), cresset.ones(1)
    Double.forward(ctx, x)
    assert ctx.to_save == (x, None) and ctx.dirty_tensors == ctx.non_differentiable == (x,) and ctx.materialize_grads is False
    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        ctx.save_for_forward(1)


def test_nested_io_function():
    class Double(NestedIOFunction):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = cresset.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_layout_of_first_gradients():
    grads = []
    for policy in (True, False):
        p = cresset.empty(2, 3, 4).permute(2, 0, 1).requires_grad_()
        with cresset.autograd.enforce_grad_layout_policy(policy):
            (p * 2).backward(cresset.ones(4, 2, 3))
        grads.append(p.grad.stride() == p.stride())
    assert grads == [True, False]
    assert cresset._C._is_grad_layout_enforced()


def test_changes_that_do_not_count():
    x = cresset.ones(2)
    view = x[:1]
    before = x._version
    with cresset.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    assert x._version == view._version == before


def test_one_recomputation_for_a_group_of_passes():
    count, x = [0], cresset.ones(2, requires_grad=True)

    def two(v):
        count[0] += 1
        return v.sin().sin(), (v * 2).exp().exp()

    for group, expected in ((True, 2), (False, 3)):
        count[0] = 0
        a, b = checkpoint(two, x, use_reentrant=False)
        with GraphExecGroup() if group else cresset.enable_grad():
            ga, gb = cresset.autograd.grad(a.sum(), x)[0], cresset.autograd.grad(b.sum(), x)[0]
        assert count[0] == expected
        assert ga.allclose(x.sin().cos() * x.cos()) and gb.allclose(2 * (x * 2).exp() * (x * 2).exp().exp())
    with GraphExecGroup(), pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"):
        GraphExecGroup().__enter__()


def test_other_parameters_in_an_optimiser_for_a_while():
    net = cresset.nn.Linear(2, 1)
    optimizer = cresset.optim.Adam(net.parameters(), lr=0.1)
    net(cresset.ones(1, 2)).sum().backward()
    optimizer.step()
    mine = {n: p.detach().clone() for n, p in net.named_parameters()}
    for name, p in net.named_parameters():
        mine[name].grad = p.grad.clone()
    state, groups, step = copy.deepcopy(optimizer.state_dict()), optimizer.param_groups, optimizer.state[net.weight]["step"].clone()
    with cresset.optim.swap_in_optimizer_params_and_state(optimizer, mine, state):
        optimizer.step()
    assert optimizer.param_groups is groups and cresset.equal(optimizer.state[net.weight]["step"], step)
    assert state["state"][0]["step"] == step + 1 and not cresset.equal(mine["weight"], net.weight)
    optimizer.step()
    assert cresset.equal(mine["weight"], net.weight)
    with pytest.raises(ValueError, match="2 parameters in groups of"), cresset.optim.swap_in_optimizer_params_and_state(optimizer, {}, state):
        pass


def test_parts_of_the_profiler():
    from cresset.autograd.profiler import EnforceUnique, KinetoStepTracker, MemRecordsAcc

    unique = EnforceUnique()
    unique.see("a", 1)
    with pytest.raises(RuntimeError, match=r"^duplicate key: \('a', 1\)$"):
        unique.see("a", 1)
    start = KinetoStepTracker.current_step()
    KinetoStepTracker.init_step_count("mine")
    assert KinetoStepTracker.increment_step("mine") == KinetoStepTracker.current_step() == start + 1
    assert KinetoStepTracker.erase_step_count("mine") and not KinetoStepTracker.erase_step_count("mine")

    class At:
        def __init__(self, ns):
            self.ns = ns

        def start_ns(self):
            return self.ns

    records = [(At(ns), None) for ns in (3000, 1000, 2000)]
    assert [r[0].ns for r in MemRecordsAcc(records).in_interval(1, 2)] == [1000, 2000]


def test_differences_of_one_input():
    gradcheck = importlib.import_module("cresset.autograd.gradcheck")
    x = cresset.tensor([1.0, 2.0], dtype=cresset.float64)
    (matrix,) = gradcheck.get_numerical_jacobian_wrt_specific_input(lambda a, b: a * b, 1, (x, x.clone()), (x,), 1e-6)
    assert matrix.allclose(cresset.diag(x))


def test_grouped_products():
    a, b = cresset.randn(6, 4), cresset.randn(2, 4, 3)
    offs = cresset.tensor([2, 6], dtype=cresset.int32)
    assert cresset.equal(F.grouped_mm(a, b, offs=offs), cresset.cat([a[:2] @ b[0], a[2:] @ b[1]]))
    assert cresset.equal(F.grouped_mm(a.t(), a, offs=offs), cresset.stack([a.t()[:, :2] @ a[:2], a.t()[:, 2:] @ a[2:]]))
    assert cresset.equal(F.grouped_mm(b.mT, a.t(), offs=offs), cresset.cat([b[0].t() @ a.t()[:, :2], b[1].t() @ a.t()[:, 2:]], 1))
    assert cresset.equal(F.grouped_mm(b.mT, b), b.mT @ b)
    with pytest.raises(RuntimeError, match="Have to provide offsets if there is a 2d matrix"):
        F.grouped_mm(a, b)
    with pytest.raises(RuntimeError, match="Offsets have to be int32"):
        F.grouped_mm(a, b, offs=offs.long())


def test_what_a_slice_was_taken_from():
    y = cresset.arange(6.0)
    assert cresset.equal(y[1:3].slice_inverse(y, 0, 1, 3), y) and y[1:3].slice_inverse(y, 0, 1, 3).data_ptr() == y.data_ptr()
    assert cresset.init_num_threads() is None


def test_sparse_parts_by_the_operators_names():
    s = cresset.tensor([[0, 1.0], [2, 0]])._to_sparse()
    assert s._indices().tolist() == [[0, 1], [1, 0]] and s._values().tolist() == [1, 2] and (s._dimI(), s._dimV()) == (2, 0)
    assert s._to_dense().tolist() == [[0, 1], [2, 0]] and not s._coalesced_(False).is_coalesced()
    assert s._to_dense()._to_sparse_csr().layout is cresset.sparse_csr and s._to_dense()._to_sparse(1).sparse_dim() == 1
    with pytest.raises(NotImplementedError, match="Could not run 'aten::_indices' with arguments from the 'CPU' backend"):
        cresset.ones(1)._indices()


def test_operators_of_a_script_module():
    net = cresset.jit.script(cresset.nn.Sequential(cresset.nn.Linear(2, 2), cresset.nn.Tanh()))
    assert cresset.jit.export_opnames(net) == ["aten::linear", "aten::tanh"]


@pytest.mark.parametrize("name", ["nccl.version", "profiler.start", "tunable.enable"])
def test_parts_of_cuda_refuse(name):
    module, function = name.split(".")
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        getattr(getattr(cresset.cuda, module), function)()


def test_jiterator():
    f = cresset.cuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return 2 * x; }")
    assert f.kernel_name == "twice"
    with pytest.raises(AssertionError, match="Jiterator is only supported on CUDA and ROCm GPUs"):
        f(cresset.ones(1))
    with pytest.raises(Exception, match="Couldn't parse code"):
        cresset.cuda.jiterator._create_jit_fn("junk")
    assert not cresset.cuda.nccl.is_available([]) and cresset.cuda.amp.amp_definitely_not_available()


def test_named_results_exist_before_the_first_call():
    types = cresset.return_types
    assert len(types.all_return_types) == len(types.__all__) and all(issubclass(t, tuple) for t in types.all_return_types)
    x = cresset.rand(2, 3)
    assert type(x.max(0)) is types.max and type(cresset.linalg.qr(x)) is types.linalg_qr
    out = cresset.empty(3), cresset.empty(3, dtype=cresset.int64)
    assert type(cresset.max(x, 0, out=out)) is types.max_out and types.max_out is not types.max
    with pytest.raises(AttributeError):
        types.nothing


def test_sparse_gradients_of_operators():
    """aten::embedding and embedding_bag make them in C++."""
    indices, offsets = cresset.tensor([1, 1, 3, 0]), cresset.tensor([0, 2])
    for mode in ("sum", "mean"):
        for padding in (None, 1):
            grads = []
            for sparse in (True, False):
                w = cresset.arange(8.0).reshape(4, 2).requires_grad_()
                out = F.embedding_bag(indices, w, offsets, sparse=sparse, mode=mode, padding_idx=padding)
                (out * cresset.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
                grads.append(w.grad)
            assert grads[0].layout is cresset.sparse_coo and cresset.equal(grads[0].to_dense(), grads[1])
            assert padding is None or grads[0]._indices().tolist() == [[3, 0]]
    w = cresset.ones(4, 2, requires_grad=True)
    cresset.ops.aten.embedding(w, indices, 3, False, True).sum().backward()
    assert w.grad.is_sparse and w.grad._nnz() == 3 and w.grad.to_dense()[:, 0].tolist() == [1, 2, 0, 0]
    optimizer = cresset.optim.SparseAdam([w])
    optimizer.step()
    weights = cresset.tensor([1.0, 2.0, 3.0, 4.0])
    bag = cresset.nn.EmbeddingBag(4, 2, mode="sum", sparse=True)
    bag(indices, offsets, per_sample_weights=weights).sum().backward()
    assert bag.weight.grad.to_dense()[:, 0].tolist() == [4, 3, 0, 3]
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        F.embedding_bag(indices, w, offsets, sparse=True, mode="sum", scale_grad_by_freq=True).sum().backward()
    with pytest.raises(ValueError, match="max mode does not support sparse weights"):
        F.embedding_bag(indices, w, offsets, sparse=True, mode="max")


def test_reductions_by_number():
    from cresset.nn import _reduction

    assert [_reduction.get_enum(word) for word in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="x is not a valid value for reduction"):
        _reduction.get_enum("x")
    old = {(None, None): "mean", (True, False): "none", (False, True): "sum", (None, False): "none", (False, None): "sum"}
    for (size_average, reduce), word in old.items():
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            assert _reduction.legacy_get_string(size_average, reduce) == word
        assert _reduction.legacy_get_enum(size_average, reduce, emit_warning=False) == _reduction.get_enum(word)


def test_what_a_tensor_must_be():
    x = cresset.ones(2, 3)
    cresset._assert_tensor_metadata(x)
    cresset._assert_tensor_metadata(x, [2, 3], [3, 1], cresset.float32, device="cpu", layout=cresset.strided)
    wrong = {"sizes": ([3, 2],), "strides": (None, [1, 1]), "dtype": (None, None, cresset.int32)}
    for what, args in wrong.items():
        with pytest.raises(RuntimeError, match=f"Tensor {what} mismatch! Expected: "):
            cresset._assert_tensor_metadata(x, *args)
    for what, options in {"device": {"device": "meta"}, "layout": {"layout": cresset.sparse_coo}}.items():
        with pytest.raises(RuntimeError, match=f"Tensor {what} mismatch! Expected: "):
            cresset._assert_tensor_metadata(x, **options)


def test_lazy_tensors_meet_lazy_tensors():
    from cresset.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

    def module(value, lazy=True):
        class Lazy(cresset.nn.modules.lazy.LazyModuleMixin, cresset.nn.Module):
            pass

        m = Lazy() if lazy else cresset.nn.Module()
        m.x = value
        return m

    for unknown, known in ((UninitializedBuffer, Buffer), (UninitializedParameter, Parameter)):
        m = module(unknown())
        m.load_state_dict(module(unknown()).state_dict())
        assert type(m.x) is unknown and m.has_uninitialized_params()
        m.load_state_dict(module(known(cresset.ones(2, 2))).state_dict())
        assert type(m.x) is not unknown and cresset.equal(m.x, cresset.ones(2, 2))
        with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
            m.load_state_dict(module(unknown()).state_dict())
        with pytest.raises(RuntimeError, match=r"dimensions in the model are \S*Size\(\[0\]\) and whose dimensions in the checkpoint are \S*Size\(\[2\]\)"):
            module(unknown(), lazy=False).load_state_dict({"x": cresset.ones(2)})


def test_checks_that_never_ran_say_so(capfd):
    from cresset.testing import FileCheck

    check = FileCheck().check("a")
    del check
    assert capfd.readouterr().out == "You have not run this instance of FileCheck!\nFileCheck checks:\n\tCHECK: a\n\n"
    FileCheck().check("a").run("a")
    assert capfd.readouterr().out == ""


def test_patterns_are_searched_in_long_texts():
    from cresset.testing import FileCheck

    FileCheck().check_regex("b[^x]*x").run("ab" * 100_000 + "x")  # one level of recursion for each character was a crash
    with pytest.raises(RuntimeError, match='Expected to find regex "b.y"'):
        FileCheck().check_regex("b.y").run("ab" * 100_000)
    with pytest.raises(RuntimeError, match="FileCheck: a regular expression was required"):
        FileCheck().check_regex("(").run("x")
    FileCheck().check("x").run("x")
    FileCheck().check("first").check_next("second").run(b"first\nsecond\n")  # lines of a process; the text of the bytes object is one line


@pytest.mark.parametrize("text", ["not a real device", "a-b", " cpu", "cpu ", "z z:0", "cpu:", "cpu:x", "cpu:01", "cpu:0:1", "cpu:-1"])
def test_words_that_name_no_device(text):
    for call in (cresset.device, lambda name: cresset.empty(1, device=name)):
        with pytest.raises(RuntimeError, match=f"Invalid device string: '{text}'"):
            call(text)
    with pytest.raises(RuntimeError, match="at start of device string: zz"):
        cresset.device("zz")


def test_operations_by_name_and_memory_of_tensors():
    packet, overloads = cresset._C._jit_get_operation("aten::abs")
    assert packet(cresset.tensor([-1.0])).item() == 1 and overloads == ["", "out"]
    assert cresset._C._jit_get_operation("aten::no_such") == (None, None)
    overloads = cresset._C._jit_get_operation("aten::add")[1]  # those of scripts are behind the dispatcher's
    assert overloads[:4] == ["Tensor", "out", "Scalar", "Scalar_out"] and {"int", "complex", "str"} <= set(overloads[4:])
    assert [cresset._C._has_storage(t) for t in (cresset.ones(2), cresset.ones(2, device="meta"), cresset.ones(2).to_sparse())] == [True, True, False]


@pytest.mark.parametrize(
    ("call", "index", "name"),
    [
        (lambda ops: ops.add(cresset.ones(2), None), 1, "other"),
        (lambda ops: ops.add.Tensor(None, None), 0, "self"),
        (lambda ops: ops.abs.default(self=None), 0, "self"),
    ],
)
def test_none_is_no_tensor_of_an_operator(call, index, name):
    with pytest.raises(RuntimeError) as error:
        call(cresset.ops.aten)
    assert str(error.value) == f"Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #{index} '{name}'"
    with cresset.library._scoped_library("none_for_tensors", "DEF") as library:
        library.define("first(Tensor x, Tensor y) -> bool")
        library.impl("first", lambda x, y: x is None and y is None, "CompositeExplicitAutograd")
        assert cresset.ops.none_for_tensors.first(None, None) is True


# What programs import from the places where PyTorch has it, and finds there the same thing as elsewhere.
@pytest.mark.parametrize(
    "first, second",
    [
        ("nn.modules.conv._pair", "nn.modules.utils._pair"), ("nn.modules.conv._ConvTransposeMixin", "nn.modules.conv._ConvTransposeNd"),
        ("cuda.amp.grad_scaler.OptState", "amp.grad_scaler.OptState"), ("_custom_ops.get_ctx", "library.get_ctx"),
        ("utils.data.datapipes.iter.combinatorics.ShufflerIterDataPipe", "utils.data.datapipes.iter.Shuffler"),
        ("utils.data.datapipes.iter.callable.MapperIterDataPipe", "utils.data.datapipes.iter.Mapper"),
    ],
)  # fmt: skip
def test_places(first, second):
    def found(path):
        module, name = f"cresset.{path}".rsplit(".", 1)
        return getattr(importlib.import_module(module), name)

    assert found(first) is found(second)


def test_hints_of_a_layer():
    # typing asks an object for __annotations__, which a class without hints of its own has from Module.
    hints = typing.get_type_hints(cresset.nn.CrossEntropyLoss())
    assert hints["training"] is bool and hints["call_super_init"] is bool


def test_masks_and_copies_of_transformers():
    from cresset.nn.modules import transformer

    mask = transformer._generate_square_subsequent_mask(3)
    assert mask.tolist() == cresset.nn.Transformer.generate_square_subsequent_mask(3).tolist()
    assert transformer._detect_is_causal_mask(mask) and not transformer._detect_is_causal_mask(mask.t()) and not transformer._detect_is_causal_mask(None)
    assert not transformer._detect_is_causal_mask(mask, size=4) and transformer._detect_is_causal_mask(None, True)
    first, second = transformer._get_clones(cresset.nn.Linear(2, 2), 2)
    assert first is not second and first.weight.tolist() == second.weight.tolist()


def test_flattening_by_a_structure():
    from cresset.fx import _pytree
    from cresset.utils import _pytree as pytree

    assert _pytree._dict_flatten_spec({"a": 1, "b": 2}, pytree.tree_flatten({"b": 0, "a": 0})[1]) in ([2, 1], [1, 2])
    assert _pytree._list_flatten_spec([1, 2, 3], pytree.tree_flatten([0, 0])[1]) == [1, 2]


def test_the_profilers_schedule_when_none_is_given():
    from cresset.profiler import profiler

    assert profiler._default_schedule_fn(7) is profiler.ProfilerAction.RECORD


def test_checks_of_values():
    one, zero = cresset.ones(1), cresset.zeros(())
    assert cresset._assert_async(one) is None and cresset._assert_async(one.requires_grad_(), "words") is None
    assert cresset._assert_async(cresset.empty(1, device="meta")) is None
    for arguments, words in (((zero,), "Expected Tensor with single nonzero value, but got zero"), ((zero, "my words"), "^my words"),
                             ((cresset.ones(0),), "with no values is ambiguous"), ((cresset.ones(2), "my words"), "more than one value is ambiguous")):
        with pytest.raises(RuntimeError, match=words):
            cresset._assert_async(*arguments)
    assert cresset._assert_scalar(2.5, "words") is cresset.ops.aten._assert_scalar(True, "words") is None
    with pytest.raises(RuntimeError, match="^words"):
        cresset._assert_scalar(0, "words")
    with pytest.raises(RuntimeError, match=r"Tensor sizes mismatch! Expected: \[2\], Got: \[1\]"):
        cresset.ops.aten._assert_tensor_metadata(one, [2])


def test_checks_are_seen_by_modes():
    from cresset.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Names():
        cresset._assert_async(cresset.ones(1), "words")
        cresset._assert_tensor_metadata(cresset.ones(1), dtype=cresset.float32)
    assert {"aten._assert_async.msg", "aten._assert_tensor_metadata.default"} <= set(Names.seen)


def test_which_tensors_can_be_data_of_others():
    compatible, x = cresset._has_compatible_shallow_copy_type, cresset.ones(1)
    assert compatible(x, cresset.ones(2, dtype=cresset.int32)) and compatible(x, cresset.nn.Parameter(x))
    assert not compatible(x, x.to("meta")) and not compatible(x, x.to_sparse())


def test_the_engine_runs_backward_as_libraries_call_it():
    engine, x = cresset.autograd.Variable._execution_engine, cresset.ones(2, requires_grad=True)
    assert engine.run_backward((x * 2,), (cresset.ones(2),), False, False, (), allow_unreachable=True, accumulate_grad=True) is None
    assert x.grad.tolist() == [2, 2]
    (grad,) = engine.run_backward((x * 3,), (cresset.ones(2),), False, False, (x,), allow_unreachable=True, accumulate_grad=False)
    assert grad.tolist() == [3, 3] and x.grad.tolist() == [2, 2]


def test_is_a_checkpoint_valid():
    seen, x = [cresset.autograd._is_checkpoint_valid()], cresset.ones(1, requires_grad=True)
    for run in (lambda y: y.backward(), lambda y: cresset.autograd.grad(y, x), lambda y: y.backward(inputs=[x])):
        y = x * 2
        y.register_hook(lambda g: seen.append(cresset.autograd._is_checkpoint_valid()))
        run(y)
    assert seen == [True, True, False, False]


def test_helpers_of_checkpoints():
    from cresset.utils import checkpoint as module

    y = cresset.ones(2, requires_grad=True) * 2
    assert module._detach_helper(y).grad_fn is None and module._detach_helper([y])[0] is y and module._detach_helper(3) == 3
    kept, changed = module._VersionWrapper(y.detach()), module._VersionWrapper(cresset.ones(2))
    changed.val.add_(1)
    assert kept.get_val(False) is kept.val and changed.get_val(True).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        changed.get_val(False)
    assert module._policy_from_bool(True) is module.CheckpointPolicy.MUST_SAVE and module._policy_from_bool(False) is module.CheckpointPolicy.PREFER_RECOMPUTE
    meta = cresset.ones(1, device="meta")
    assert [module._infer_device_type(*args) for args in ((y,), (1,), ({"a": [meta]}, y))] == ["cpu", "cpu", "meta"]
    assert module._get_device_module("cpu") is cresset.cpu and module._get_device_module("meta") == cresset.device("meta")
    with cresset.autocast("cpu", dtype=cresset.float16):
        expected = {"enabled": True, "dtype": cresset.float16, "cache_enabled": True}
        assert module._get_autocast_kwargs("cpu") == (expected, expected) and module._get_autocast_kwargs("meta") == (None, expected)


def test_hooks_of_saved_tensors_as_libraries_push_them():
    names, seen = cresset._C._autograd, []
    names._push_saved_tensors_default_hooks(lambda t: seen.append(t) or t, lambda t: t)
    try:
        cresset.ones(1, requires_grad=True).exp()
    finally:
        names._pop_saved_tensors_default_hooks()
    assert len(seen) == 1


def test_settings_of_an_absent_planner():
    planner = cresset.backends.opt_einsum
    assert planner.set_flags() == planner.set_flags(_enabled=False) == (False, None)
    for flags in ({"_enabled": True}, {"_strategy": "auto"}):
        with pytest.raises(ValueError, match="opt_einsum is not available, so setting"):
            planner.set_flags(**flags)


def test_modules_where_pytorch_has_them():
    assert F._Reduction.get_enum("mean") == 1 and cresset.functional.F is F
    assert importlib.import_module("cresset.random").Generator is typing.get_origin(typing.Generator[int, int, int])
    assert cresset.fx.proxy.Argument is cresset.fx.node.Argument and importlib.import_module("cresset._tensor").Tensor is cresset.Tensor
    made = cresset.library.custom_op("small_names::one", lambda: cresset.ones(1), mutates_args=(), schema="() -> Tensor")
    assert type(made) is importlib.import_module("cresset._library.custom_ops").CustomOpDef
    for refused in (cresset.cuda._lazy_init, cresset.cuda.profiler.cudart, cresset.cuda.memory._record_memory_history, cresset.cuda.memory._snapshot):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            refused()


def test_loops_over_carried_values():
    n, x = cresset.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (cresset.tensor(0), cresset.ones(2)))
    assert n == 3 and x.tolist() == [8, 8]
    assert cresset.while_loop(lambda n: n < 3, lambda n: n + 1, [0]) == (3,) and cresset.while_loop(lambda n: False, lambda n: n + 1, (0,)) == (0,)
    for arguments, words in (((3, print, ()), "Expect cond_fn and body_fn to be callable"), ((bool, abs, 0), "Expect carried_inputs to be a tuple"),
                             ((lambda n: n < 3, lambda n: n.float(), (cresset.tensor(0),)), "to have same metadata but found")):
        with pytest.raises(RuntimeError, match=words):
            cresset.while_loop(*arguments)


def test_questions_about_symbols_have_the_answers_of_numbers():
    from cresset.fx.experimental import symbolic_shapes as module

    for name in ("guard_or_false", "guard_or_true", "statically_known_true", "guard_size_oblivious", "expect_true", "guard_bool"):
        assert [getattr(module, name)(b) for b in (True, False)] == [True, False]
        with pytest.raises(AssertionError, match="Expected bool, got"):
            getattr(module, name)(3)
    assert (module.guard_int(3), module.guard_float(2.5), module.guard_scalar(True)) == (3, 2.5, True)
    assert module.is_concrete_int(3) and module.is_concrete_bool(True) and module.is_concrete_float(2.5) and module.has_static_value(0)
    for call, words in ((lambda: module.guard_int(True), "Expected int, got True"), (lambda: module.is_concrete_int(2.5), "Expected SymInt or int"),
                        (lambda: module.guard_scalar("a"), "unrecognized scalar a"), (lambda: module.has_static_value("a"), "Expected BoolLike")):
        with pytest.raises(AssertionError, match=words):
            call()
    assert not module.is_symbolic(3) and not module.has_free_symbols(cresset.ones(2)) and len(module.free_symbols([3])) == 0
    assert module.sym_eq((2, 3), (2, 3)) and not module.sym_eq((2, 3), (2,)) and not module.sym_and(True, False) and module.sym_or(False, True)


def test_shapes_of_attention_are_checked_by_name():
    check, three, two = F._mha_shape_check, cresset.ones(2, 3, 4), cresset.ones(3, 4)
    assert check(three, three, three, None, None, 2) is True and check(two, two, two, cresset.ones(3), cresset.ones(3, 3), 2) is False
    for arguments, words in (
        ((two, three, three, None, None, 2), r"For unbatched \(2-D\) `query`, expected `key` and `value` to be 2-D but found 3-D and 3-D"),
        ((two, two, two, two, None, 2), "expected `key_padding_mask` to be `None` or 1-D but found 2-D"),
        ((two, two, two, None, cresset.ones(3), 2), "expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D"),
        ((two, two, two, None, cresset.ones(1, 3, 3), 2), r"Expected `attn_mask` shape to be \(2, 3, 3\)"),
        ((cresset.ones(3), two, two, None, None, 2), "query should be unbatched 2D or batched 3D tensor but received 1-D"),
    ):
        with pytest.raises(AssertionError, match=words):
            check(*arguments)


def test_products_of_groups_under_their_older_name():
    a, b, offs = cresset.randn(6, 8), cresset.randn(3, 8, 4), cresset.tensor([2, 4, 6], dtype=cresset.int32)
    assert cresset.equal(cresset._grouped_mm(a, b, offs), F.grouped_mm(a, b, offs=offs))


@pytest.mark.parametrize("archive", [True, False])
def test_parts_of_load_by_name(archive):
    import io
    import pickle

    from cresset import serialization as module

    file = io.BytesIO()
    cresset.save({"a": cresset.ones(2)}, file, _use_new_zipfile_serialization=archive)
    file.seek(0)
    if archive:
        assert module._load(cresset._C.PyTorchFileReader(file), None, pickle)["a"].tolist() == [1, 1]
        file.seek(0)
        with module._open_zipfile_reader(file) as opened:
            read = module._load(opened, "cpu", pickle, encoding="utf-8")
    else:
        read = module._legacy_load(file, None, pickle)
    assert read["a"].tolist() == [1, 1]


def test_overloads_that_calls_run():
    resolve, x = cresset._C._jit_resolve_packet, cresset.ones(2)
    assert [resolve("aten::sum", x), resolve("aten::sum", x, dim=1), resolve("aten::add", x, 1), resolve("aten::_foreach_add", [x], 2.0)] == [
        "default", "dim_IntList", "Tensor", "Scalar",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="Overloaded torch operator invoked from Python failed to match any schema:"):
        resolve("aten::sum", x, x, x)


def test_negatives_by_the_name_of_a_view():
    x = cresset.tensor([1.0, -2.0], requires_grad=True)
    cresset._neg_view(x).sum().backward()
    assert cresset._neg_view(x).tolist() == [-1.0, 2.0] and x.grad.tolist() == [-1.0, -1.0]


def test_kernels_of_python_answer_while_the_object_lives():
    from cresset.utils._python_dispatch import TorchDispatchMode

    library = cresset.library.Library("kernels_of_python", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    twice, x = cresset.ops.kernels_of_python.twice.default, cresset.ones(1)
    twice.py_impl(cresset._C.DispatchKey.BackendSelect)(lambda x: x * 3)
    assert twice(x).item() == 2
    on = cresset._C._EnablePythonDispatcher()
    assert twice(x).item() == 3
    with TorchDispatchMode() as above:
        del on
        assert cresset._C._get_dispatch_stack_at(cresset._C._len_torch_dispatch_stack() - 1) is above
    assert twice(x).item() == 2 and not cresset._C._len_torch_dispatch_stack()


def test_numbers_of_storages():
    x = cresset.ones(3)
    for number in (cresset._C._storage_id, cresset._C._storage_address):
        assert number(x) == number(x[1:]) == x.untyped_storage()._cdata and number(x) != number(x.clone())


def test_functions_of_python_among_the_functions():
    functions = cresset._C._VariableFunctions
    assert functions.unique_dim(cresset.ones(2, 2), 0)[2].tolist() == [2] and functions.tensor([1]).tolist() == [1] and functions.numel(cresset.ones(3)) == 3
    assert functions.quantize_per_tensor is cresset.quantize_per_tensor and functions.as_tensor is cresset.as_tensor
    assert cresset._unsafe_index(cresset.arange(3), [cresset.tensor([1])]).tolist() == [1] and cresset._sparse_sum(cresset.eye(2).to_sparse()).item() == 2
    for owner in (functions, cresset):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            owner.nothing
    assert not hasattr(cresset, "unique_dim")


def test_modules_of_operators_say_what_they_have():
    """PyTorch 2.13 has 56 names in special and 19 in fft, the type among them."""
    special, fft = cresset.special.__all__, cresset.fft.__all__
    assert len(special) == 56 and {"airy_ai", "psi", "zeta"} <= set(special) and all(callable(getattr(cresset.special, n)) for n in special)
    assert len(fft) == 19 and "Tensor" in fft and "fftn" in fft and "hfftn" not in fft


def test_the_opaque_layout():
    assert cresset._mkldnn is cresset._C._mkldnn and cresset._mkldnn != cresset.strided
    assert copy.deepcopy(cresset._mkldnn) is cresset._mkldnn
    assert not cresset.ones(1).is_mkldnn and cresset.ones(1).layout is not cresset._mkldnn
    with pytest.raises(NotImplementedError, match="given layout _mkldnn"):
        cresset.ones(2, layout=cresset._mkldnn)


def test_the_allocator_for_phones_is_chosen_once():
    choose, leave = cresset._C._set_default_mobile_cpu_allocator, cresset._C._unset_default_mobile_cpu_allocator
    for call, first in ((leave, None), (choose, choose), (leave, leave)):
        if first:
            first()
        with pytest.raises(RuntimeError, match="must have been called before" if call is leave else "Already within the scope"):
            call()
    assert cresset._C._llvm_enabled() is False
