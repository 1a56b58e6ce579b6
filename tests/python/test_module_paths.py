"""Names at the module paths where packages written for PyTorch import them."""

import importlib

import pytest

import cresset

PATHS = {
    "cuda.amp": {"autocast": None, "GradScaler": None, "custom_fwd": None, "custom_bwd": None},
    "functional": {"einsum": "einsum", "norm": "norm", "stft": "stft", "unique": "unique"},
    "nn.common_types": {"_size_1_t": None, "_size_2_t": None, "_size_3_t": None, "_size_2_opt_t": None, "_ratio_2_t": None},
    "nn.modules.activation": {"ReLU": "nn.ReLU"},
    "nn.modules.batchnorm": {"_BatchNorm": None, "_NormBase": None, "BatchNorm2d": "nn.BatchNorm2d"},
    "nn.modules.conv": {"_ConvNd": None, "Conv2d": "nn.Conv2d"},
    "nn.modules.fold": {"Fold": "nn.Fold", "Unfold": "nn.Unfold"},
    "nn.modules.instancenorm": {"_InstanceNorm": None, "InstanceNorm2d": "nn.InstanceNorm2d"},
    "nn.modules.upsampling": {"Upsample": "nn.Upsample"},
    "nn.modules.utils": {"_pair": None, "_triple": None},
    "optim.adamw": {"AdamW": "optim.AdamW"},
    "optim.lr_scheduler": {"StepLR": None},
    "utils.data.dataloader": {"DataLoader": "utils.data.DataLoader"},
}


@pytest.mark.parametrize("path, name, public", [(path, *item) for path, names in PATHS.items() for item in names.items()])
def test_name_is_there(path, name, public):
    value = getattr(importlib.import_module(f"cresset.{path}"), name)
    if public:
        expected = cresset
        for part in public.split("."):
            expected = getattr(expected, part)
        assert value is expected
