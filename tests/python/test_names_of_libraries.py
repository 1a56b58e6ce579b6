"""Names that packages for quantization, curvature, interpretation and chemistry import, and what they do."""

import cresset as torch
import pytest


@pytest.mark.parametrize("path", [
    "utils._pytree", "utils._contextlib", "utils.data.graph_settings", "fx.experimental.const_fold", "fx.passes.split_utils", "fx._compatibility", "_decomp", "_export",
    "_higher_order_ops.out_dtype", "autograd.profiler_util", "jit._trace", "nn.utils._named_member_accessor", "distributed.algorithms.join", "_subclasses.meta_utils",
    "ao.nn.intrinsic.qat",
])  # fmt: skip
def test_modules_are_reached_without_import(path):
    module = torch
    for name in path.split("."):
        module = getattr(module, name)
    assert module.__name__.endswith(path)


def test_modules_that_do_not_exist():
    for module in (torch.utils, torch.fx, torch.jit, torch.autograd, torch.testing, torch.profiler, torch._higher_order_ops):
        with pytest.raises(AttributeError, match="has no attribute 'no_such_module'"):
            module.no_such_module  # noqa: B018
        assert not hasattr(module, "__no_such_thing__")


def test_variable_functions_are_those_of_the_package():
    assert [n for n in dir(torch._C._VariableFunctions) if not n.startswith("__") and not hasattr(torch, n)] == []
    assert "relu" in dir(torch._C._VariableFunctions)


def test_projections_of_attention():
    x, w = torch.arange(6.0).reshape(2, 3), torch.eye(3)
    q, k, v = torch.nn.functional._in_projection_packed(x, x, x, torch.cat([w, 2 * w, 3 * w]), torch.ones(9))
    assert [t.tolist() for t in (q, k, v)] == [(x + 1).tolist(), (2 * x + 1).tolist(), (3 * x + 1).tolist()]
    other = torch.ones(2, 2)
    q, k, v = torch.nn.functional._in_projection(x, other, other, w, torch.ones(3, 2), torch.zeros(3, 2), b_v=torch.ones(3))
    assert q.tolist() == x.tolist() and k.tolist() == [[2.0] * 3] * 2 and v.tolist() == [[1.0] * 3] * 2
    with pytest.raises(AssertionError, match=r"^expecting key weights shape of \(3, 2\), but got cresset.Size\(\[3, 3\]\)$"):
        torch.nn.functional._in_projection(x, other, other, w, w, w)
    with pytest.raises(AssertionError, match=r"^expecting query bias shape of \(3,\), but got cresset.Size\(\[2\]\)$"):
        torch.nn.functional._in_projection(x, x, x, w, w, w, torch.ones(2))


def test_out_dtype():
    out_dtype = torch._higher_order_ops.out_dtype.out_dtype
    a = torch.tensor([[100, -100], [127, 127]], dtype=torch.int8)
    assert out_dtype(torch.ops.aten.mm.default, torch.int32, a, a).tolist() == [[-2700, -22700], [28829, 3429]]
    assert out_dtype(torch.ops.aten.mul.Scalar, torch.int32, a, 300).tolist() == [[30000, -30000], [38100, 38100]]
    assert torch.func.vmap(lambda row: out_dtype(torch.ops.aten.mul.Tensor, torch.int32, row, row))(a).tolist() == [[10000, 10000], [16129, 16129]]
    x = torch.ones(2, 2, requires_grad=True)
    out_dtype(torch.ops.aten.mm.default, torch.float64, x, torch.full((2, 2), 3.0)).sum().backward()
    assert x.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    with pytest.raises(ValueError, match="^out_dtype's first argument must be an OpOverload$"):
        out_dtype(torch.ops.aten.mm, torch.int32, a, a)
    with pytest.raises(ValueError, match="^out_dtype only allows the following operators: "):
        out_dtype(torch.ops.aten.sum.default, torch.int32, a)


def test_parameters_of_kernels():
    from cresset.sparse import _triton_ops_meta as meta

    assert meta.get_meta("a", (1, 2), "gpu") is None
    meta.update("a", "gpu", (0, torch.float16, 0.5), (1, 2), {"tile": 4})
    try:
        assert meta.get_meta("a", (1, 2), "gpu") == {"tile": 4} and meta.get_meta("a", (1, 2), "other") == {"tile": 4}
        assert meta.get_meta("a", (1, 2), "other", exact=True) is None and meta.get_meta("a", ("*", 2), "gpu") == {(1, 2): {"tile": 4}}
    finally:
        meta._tables.clear()
    step = lambda name, value, direction, parameters: min(max(value + direction, 0), 9)  # noqa: E731
    best, gain, value, _ = meta.minimize(lambda p: (p["a"] - 3) ** 2 + (p["b"] - 5) ** 2 + 1, {"a": 0, "b": 0}, {"a": 0, "b": 0}, step)
    assert best == {"a": 3, "b": 5} and value == 1 and round(gain, 2) == 97.14  # from 35


def test_compile_as_a_backend():
    wrapper = torch._TorchCompileInductorWrapper("default", None, None)
    assert wrapper == torch._TorchCompileInductorWrapper("default", None, None) and wrapper.compiler_name == "inductor"
    assert torch.compile(lambda x: x.sin() + 1, backend=wrapper)(torch.zeros(2)).tolist() == [1.0, 1.0]
    seen = []

    def backend(graph, examples, **options):
        seen.append(options)
        return graph.forward

    assert torch.compile(lambda x: x * 2, backend=torch._TorchCompileWrapper(backend, None, {"a": 1}, None))(torch.ones(2)).tolist() == [2.0, 2.0]
    assert seen == [{"options": {"a": 1}}]
    with pytest.raises(RuntimeError, match="^Unrecognized mode=fast"):
        torch._TorchCompileInductorWrapper("fast", None, None)


def test_questions_about_compilation_in_scripts():
    def f(x):
        if torch.compiler.is_compiling() or torch.compiler.is_exporting() or torch.compiler.is_dynamo_compiling():
            return x + 1
        return x * 2

    assert torch.jit.script(f)(torch.ones(2)).tolist() == [2.0, 2.0]


def test_lists_of_own_tensors():
    from cresset.optim.optimizer import _default_to_fused_or_foreach
    from cresset.utils._foreach_utils import _foreach_supported_types

    class Own(torch.Tensor):
        pass

    own = torch.ones(2).as_subclass(Own)
    assert _foreach_supported_types == [torch.Tensor]
    assert _default_to_fused_or_foreach([own], False, use_fused=True) == (False, False)
    _foreach_supported_types.append(Own)
    try:
        assert _default_to_fused_or_foreach([own], False, use_fused=True) == (True, False)
    finally:
        _foreach_supported_types.remove(Own)


def test_decompositions_for_a_code_generator():
    from cresset._inductor import decomposition

    @decomposition.register_decomposition([torch.ops.aten.relu.default])
    def relu(x):
        return x.clamp(0)

    assert decomposition.decompositions.pop(torch.ops.aten.relu.default) is relu
    assert torch._decomp.decomposition_table.get(torch.ops.aten.relu.default) is not relu


def test_one_tape_for_all_levels():
    from cresset._functorch.pyfunctorch import retrieve_all_functorch_interpreters, retrieve_current_functorch_interpreter

    x = torch.ones(2)
    assert torch._C._functorch._unwrap_for_grad(x, 1) is x and torch._C._functorch._wrap_for_grad(x, 1) is x
    assert torch._C._functorch.get_interpreter_stack() is None and retrieve_all_functorch_interpreters() == []
    with pytest.raises(AssertionError, match="^interpreter must not be None$"):
        retrieve_current_functorch_interpreter()


def test_sparse_operators_in_inference_mode():
    s = torch.sparse_coo_tensor(torch.tensor([[0, 1], [2, 0]]), torch.tensor([1.0, 2.0]), (3, 3))

    def f(indices, values):
        return torch.sparse_coo_tensor(indices, values, [3, 3]).coalesce().to_dense()

    with torch.inference_mode():
        assert torch.ops.aten.to_dense(s).tolist() == [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        assert (s @ torch.ones(3, 3)).sum().item() == 9 and torch.ops.aten._nnz(s) == 2
        assert torch.jit.script(f)(torch.tensor([[0, 1], [2, 0]]), torch.ones(2)).sum().item() == 2


@pytest.mark.parametrize("word, number", [
    ("float8_e4m3fn", 24), ("int8", 1), ("bfloat16", 15), ("bool", 11), ("half", 5), ("long", 4), ("complex64", 9), ("uint16", 27), ("float32", 6),
])  # fmt: skip
def test_types_as_defaults_in_schemas(word, number):
    assert torch._C.parse_schema(f"f(Tensor x, ScalarType d={word}) -> Tensor").arguments[1].default_value == number


def test_words_that_are_no_types():
    with pytest.raises(RuntimeError, match="invalid numeric default value"):
        torch._C.parse_schema("f(Tensor x, ScalarType d=int9) -> Tensor")


def test_tensors_of_two_in_four():
    from cresset.sparse import SparseSemiStructuredTensor, SparseSemiStructuredTensorCUSPARSELT, SparseSemiStructuredTensorCUTLASS, to_sparse_semi_structured

    assert issubclass(SparseSemiStructuredTensorCUTLASS, SparseSemiStructuredTensor) and SparseSemiStructuredTensor._DEFAULT_ALG_ID == 0
    for make in (to_sparse_semi_structured, SparseSemiStructuredTensorCUSPARSELT.from_dense, SparseSemiStructuredTensorCUTLASS.from_dense):
        with pytest.raises(RuntimeError, match=r"^Error original_tensor.device= cpu is not supported! Only CUDA tensors are currently supported.$"):
            make(torch.ones(64, 64))


def test_scaled_products():
    F = torch.nn.functional
    a, b = torch.ones(16, 32).to(torch.float8_e4m3fn), torch.full((16, 32), 2.0).to(torch.float8_e4m3fn).t()
    whole = F.scaled_mm(a, b, torch.tensor(2.0), F.ScalingType.TensorWise, torch.tensor(0.5), F.ScalingType.TensorWise, output_dtype=torch.float32)
    assert whole.tolist() == [[64.0] * 16] * 16
    rows = F.scaled_mm(a, b, [torch.arange(16.0)[:, None]], [F.ScalingType.RowWise], [torch.ones(1, 16)], [F.ScalingType.RowWise])
    assert rows.dtype == torch.bfloat16 and rows[:, 0].tolist() == [64.0 * i for i in range(16)]
    with pytest.raises(ValueError, match="^Invalid scaling configuration: TensorWise or RowWise for both operands was required; got ScalingType.TensorWise and"):
        F.scaled_mm(a, b, torch.tensor(1.0), F.ScalingType.TensorWise, torch.ones(1, 16), F.ScalingType.RowWise)
    for other in ({"swizzle_a": F.SwizzleType.SWIZZLE_32_4_4}, {"contraction_dim": (0,)}):
        with pytest.raises(NotImplementedError, match="scaled_mm: scales that are swizzled, and other dimensions"):
            F.scaled_mm(a, b, torch.tensor(1.0), F.ScalingType.TensorWise, torch.tensor(1.0), F.ScalingType.TensorWise, **other)
    with pytest.raises(NotImplementedError, match="_scaled_grouped_mm_v2' with arguments from the 'CPU' backend"):
        F.scaled_grouped_mm(a, b, torch.tensor(1.0), F.ScalingType.RowWise, torch.tensor(1.0), F.ScalingType.RowWise)
    assert F.SwizzleType.SWIZZLE_32_4_4.value == 1 and F.ScalingType.BlockWise128x128.value == 5


def test_operators_that_are_functions_of_python():
    @torch.jit.script
    def f(x: torch.Tensor):
        return x.dequantize()

    assert f(torch.ones(2, dtype=torch.float16)).dtype == torch.float32
    assert torch.ops.aten.dequantize(torch.ones(2, dtype=torch.float16)).dtype == torch.float32
    assert torch.ops.aten._grouped_mm.default._schema.arguments[2].name == "offs"


@pytest.mark.skipif(not torch.distributed.is_available(), reason="built without distributed")
def test_collectives_by_name():
    assert str(torch.ops.c10d.scatter_.default) == "c10d.scatter_.default"
    with pytest.raises(RuntimeError, match=r"c10d::barrier\(\) Expected a value of type '__torch__.torch.classes.c10d.ProcessGroup'.* found type 'NoneType'"):
        torch.ops.c10d.barrier(torch.ones(1), None, [])
    from cresset.distributed._functional_collectives import AsyncCollectiveTensor

    x = torch.ones(2, requires_grad=True)
    under_way = torch.ops._c10d_functional._wrap_tensor_autograd(x * 2)
    assert isinstance(under_way, AsyncCollectiveTensor)
    (under_way * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_measures_of_quantized_models():
    from cresset.ao.ns.fx.utils import compute_cosine_similarity, compute_normalized_l2_error, compute_sqnr

    x, y = torch.ones(3), torch.tensor([1.0, 1.0, 1.1])  # PyTorch's answers for them
    assert round(compute_sqnr(x, y).item(), 4) == 24.7712 and round(compute_normalized_l2_error(x, y).item(), 4) == 0.0577
    assert round(compute_cosine_similarity(x, y).item(), 4) == 0.9990
    assert [round(v.item(), 4) for v in compute_sqnr([x, x], [y, y])] == [24.7712] * 2 and compute_sqnr([x], [y, y]) is None


def test_what_code_generators_are_told():
    import cresset._inductor

    cresset._inductor.config.triton.unique_kernel_names = True
    assert torch._C._cpu._init_amx() is False and torch._C._cpu._get_cpu_capability() == torch.cpu.get_capabilities()
    with pytest.raises(RuntimeError, match="^inline_asm_elementwise only supports CUDA tensors$"):
        torch._higher_order_ops.inline_asm_elementwise.inline_asm_elementwise(torch.ones(2), asm_str="", constraints="", dtype=torch.float32)


def test_states_of_modules():
    from cresset.distributed._composable_state import _get_module_state, _insert_module_state, _State

    module, state = torch.nn.Linear(1, 1), _State()
    assert _get_module_state(module) is None
    _insert_module_state(module, "replicate", state)
    assert _get_module_state(module) is state and _get_module_state(module, "replicate") is state and _get_module_state(module, "fsdp") is None


def test_sizes_that_normalisation_refuses():
    """Values of PyTorch 2.13; nncf asks before its own batch_norm."""
    functional = torch.nn.functional
    for size in ([1, 3], [1, 3, 1, 1], [1, 1]):
        with pytest.raises(ValueError, match="^Expected more than 1 value per channel when training, got input size "):
            functional._verify_batch_size(size)
        with pytest.raises(ValueError, match="^Expected more than 1 spatial element when training, got input size "):
            functional._verify_spatial_size(size)
    assert functional._verify_batch_size([2, 3]) is None and functional._verify_spatial_size([1, 3, 2]) is None
    with pytest.raises(AssertionError, match=r"^Expected key_padded_mask.shape\[1\] to be 4, but got 3$"):
        functional._check_key_padding_mask(torch.zeros(2, 3), 4, 2)


def test_operators_behind_functions():
    """Values of PyTorch 2.13."""
    builtins = torch.jit._builtins
    assert builtins._find_builtin(torch.add) == "aten::add" and builtins._find_builtin(torch._C._nn.gelu) == "aten::gelu"
    assert all(builtins._find_builtin(f) is None for f in (len, lambda x: x, torch.ops.aten.add))

    def third(x):
        raise AssertionError("scripts call the operator")

    builtins._register_builtin(third, "aten::neg")
    assert torch.jit.script(_calls(third))(torch.ones(1)).item() == -1


def _calls(f):
    def calls(x):
        return f(x)

    return calls


def test_choices_by_a_flag_show_both_functions():
    from cresset._jit_internal import boolean_dispatch, boolean_dispatched

    f = boolean_dispatch("twice", 1, False, lambda x, twice=False: 2 * x, lambda x, twice=False: x, None, "f")
    entry = boolean_dispatched[f]
    assert (entry["arg_name"], entry["index"], entry["default"], entry["if_true"](2), entry["if_false"](2)) == ("twice", 1, False, 4, 2)


def test_optimisers_over_lists_by_their_old_names():
    from cresset.optim import _multi_tensor

    p = torch.ones(2, requires_grad=True)
    optimiser = _multi_tensor.RMSprop([p], lr=0.5)
    assert isinstance(optimiser, torch.optim.RMSprop) and optimiser.defaults["foreach"] is True and optimiser.defaults["lr"] == 0.5
    assert torch.cuda.amp.common.amp_definitely_not_available() is torch.cuda.amp.amp_definitely_not_available()
