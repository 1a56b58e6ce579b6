"""Sparsity and quantization of a model's embeddings."""

import cresset
from cresset import nn
from cresset.ao.quantization import convert, float_qparams_weight_only_qconfig, prepare

from ...sparsifier.utils import fqn_to_module, module_to_fqn

SUPPORTED_MODULES = {nn.Embedding, nn.EmbeddingBag}


def _fetch_all_embeddings(model):
    """[(name, module)] of the embeddings below `model`."""
    return [(name, module) for name, module in model.named_modules() if module is not model and type(module) in SUPPORTED_MODULES]


def _sparse(weights, data_sparsifier_class, sparse_config):
    """The weights {name: tensor}, masked."""
    sparsifier = data_sparsifier_class(**sparse_config)
    valid = {name: name.replace(".", "_") for name in weights}
    for name, weight in weights.items():
        sparsifier.add_data(name=valid[name], data=weight)
    sparsifier.step()
    sparsifier.squash_mask()
    return {name: sparsifier.get_data(name=valid[name], return_original=False).detach() for name in weights}


def _quantize(model, embeddings):
    for _, module in embeddings:
        module.qconfig = float_qparams_weight_only_qconfig
    prepare(model, inplace=True)
    convert(model, inplace=True)


def post_training_sparse_quantize(model, data_sparsifier_class, sparsify_first=True, select_embeddings=None, **sparse_config):
    """Quantize the embeddings of `model` (those of the list select_embeddings, or all) and make them sparse, in place.

    Sparsity comes first, or with sparsify_first=False after quantization: the weights are masked as numbers and quantized again by the same scales. `sparse_config`
    goes to the constructor of the sparsifier.
    """
    if select_embeddings is None:
        embeddings = _fetch_all_embeddings(model)
    else:
        if not isinstance(select_embeddings, list):
            raise AssertionError("the embedding_modules must be a list of embedding modules")
        embeddings = []
        for module in select_embeddings:
            if type(module) not in SUPPORTED_MODULES:
                raise AssertionError("the embedding_modules list must be an embedding or embedding bags")
            name = module_to_fqn(model, module)
            if name is None:
                raise AssertionError("the embedding modules must be part of input model")
            embeddings.append((name, module))
    if sparsify_first:
        masked = _sparse({name: module.weight for name, module in embeddings}, data_sparsifier_class, sparse_config)
        for name, module in embeddings:
            module.weight = nn.Parameter(masked[name])
        _quantize(model, embeddings)
        return
    _quantize(model, embeddings)
    modules = {name: fqn_to_module(model, name) for name, _ in embeddings}
    masked = _sparse({name: module.weight().dequantize() for name, module in modules.items()}, data_sparsifier_class, sparse_config)
    for name, module in modules.items():
        old = module.weight()
        scales, zeros, axis = old.q_per_channel_scales(), old.q_per_channel_zero_points(), old.q_per_channel_axis()
        module.set_weight(cresset.quantize_per_channel(masked[name], scales, zeros, axis, old.dtype))
