"""What runs under the interpreter that has PyTorch: models saved as scripts and traces with inputs and answers, and the check of files that come
back. Models of packages that are not installed are left out.

    torch_side.py names | save FOLDER NAME... | check FOLDER NAME...
"""

import contextlib
import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

# name: (constructor's keywords, input sizes). Random weights; small images where the network takes them.
TORCHVISION = {
    "alexnet": (64,), "vgg11": (32,), "vgg11_bn": (32,), "resnet18": (64,), "resnet50": (64,), "resnext50_32x4d": (64,), "wide_resnet50_2": (64,), "squeezenet1_0": (64,),
    "squeezenet1_1": (64,), "densenet121": (64,), "googlenet": (64,), "inception_v3": (96,), "mobilenet_v2": (64,), "mobilenet_v3_small": (64,), "mobilenet_v3_large": (64,),
    "shufflenet_v2_x0_5": (64,), "shufflenet_v2_x1_0": (64,), "mnasnet0_5": (64,), "efficientnet_b0": (64,), "efficientnet_v2_s": (64,), "regnet_y_400mf": (64,),
    "regnet_x_400mf": (64,), "convnext_tiny": (64,), "swin_t": (64,), "swin_v2_t": (64,), "vit_b_32": (224,), "maxvit_t": (224,),
    "segmentation.fcn_resnet50": (64,), "segmentation.deeplabv3_mobilenet_v3_large": (64,), "segmentation.lraspp_mobilenet_v3_large": (64,), "video.r3d_18": (4, 32),
    "optical_flow.raft_small": (),
}  # fmt: skip
TIMM = {
    "resnet10t": 64, "resnet18d": 64, "seresnet18": 64, "ecaresnet26t": 64, "skresnet18": 64, "res2net50_14w_8s": 64, "dla34": 64, "vovnet39a": 64, "ghostnet_050": 64,
    "mobilenetv3_small_050": 64, "mobilenetv4_conv_small_035": 64, "efficientnet_lite0": 64, "tinynet_e": 64, "mnasnet_small": 64, "fbnetv3_b": 64, "hardcorenas_a": 64,
    "regnetx_002": 64, "regnety_002": 64, "repvgg_a0": 64, "mobileone_s0": 64, "convnext_atto": 64, "convnextv2_atto": 64, "edgenext_xx_small": 64, "poolformer_s12": 64,
    "mixer_s32_224": 224, "gmlp_ti16_224": 224, "resmlp_12_224": 224, "vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224, "cait_xxs24_224": 224, "xcit_nano_12_p16_224": 224,
    "swin_tiny_patch4_window7_224": 224, "coat_lite_tiny": 224, "pvt_v2_b0": 64, "levit_128s": 224, "mobilevit_xxs": 64, "efficientformer_l1": 224, "inception_next_atto": 64,
    "hgnetv2_b0": 64, "csatv2": 64, "nfnet_l0": 64, "dm_nfnet_f0": 64, "tresnet_m": 64, "crossvit_tiny_240": 240, "visformer_tiny": 224, "lcnet_035": 64,
}  # fmt: skip


class Encoder(torch.nn.Module):
    """The shape of a language model's encoder: words, places, layers of attention, a pooled result."""

    def __init__(self, layers: int = 3, width: int = 32, norm_first: bool = False, causal: bool = False):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(50, width), torch.nn.Embedding(16, width)
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=norm_first)
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 50)
        self.causal = causal

    def forward(self, ids):
        h = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        if self.causal:
            mask = torch.ones(ids.shape[1], ids.shape[1], device=ids.device, dtype=torch.bool).triu(1)
            h = self.layers(h, mask)
        else:
            h = self.layers(h)
        return self.head(h), h.mean(1)


class Sequence(torch.nn.Module):
    """From one sequence to another, with both halves of a transformer."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 32)
        self.transformer = torch.nn.Transformer(32, 4, 1, 1, 64, batch_first=True)

    def forward(self, ids):
        h = self.words(ids)
        return self.transformer(h, h[:, 1:])


class Recurrent(torch.nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.words = torch.nn.Embedding(50, 16)
        self.layer = getattr(torch.nn, kind)(16, 24, 2, batch_first=True, bidirectional=True)

    def forward(self, ids):
        y, _ = self.layer(self.words(ids))
        return y


OWN = {
    "bert": lambda: Encoder(), "bert_norm_first": lambda: Encoder(norm_first=True), "gpt": lambda: Encoder(causal=True), "translation": Sequence,
    "lstm": lambda: Recurrent("LSTM"), "gru": lambda: Recurrent("GRU"),
}  # fmt: skip


def load_torchvision():
    """torchvision; of one whose extension is for another PyTorch the networks, which are Python only."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        importlib.import_module("torchvision")


def names():
    found = [f"own.{n}" for n in OWN]
    with contextlib.suppress(ImportError):
        load_torchvision()
        found += [f"torchvision.{n}" for n, sizes in TORCHVISION.items() if sizes]
    with contextlib.suppress(ImportError):
        import timm

        found += [f"timm.{n}" for n in TIMM if timm.is_model(n)]
    return found


def made(name):
    """(model, inputs)"""
    package, _, which = name.partition(".")
    if package != "own":
        load_torchvision()
    if package == "own":
        return OWN[which](), (torch.randint(0, 50, (2, 9)),)
    if package == "timm":
        import timm

        return timm.create_model(which, pretrained=False, scriptable=True), (torch.randn(2, 3, TIMM[which], TIMM[which]),)
    import torchvision

    part, _, last = which.rpartition(".")
    module = getattr(torchvision.models, part) if part else torchvision.models
    options = {"init_weights": False} if last in ("googlenet", "inception_v3") else {}
    model = getattr(module, last)(weights=None, **({"weights_backbone": None} if part == "segmentation" else {}), **options)
    sizes = TORCHVISION[which]
    return model, (torch.randn(2, 3, *sizes, sizes[-1]),)


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return [value] if isinstance(value, torch.Tensor) else []


def save(folder, wanted):
    for name in wanted:
        torch.manual_seed(0)
        try:
            model, inputs = made(name)
        except Exception as error:  # noqa: BLE001: a model of another version of the package
            print(f"{name} made: {error!r}"[:300].replace("\n", " "), file=sys.stderr)
            continue
        model.eval()
        for mode in ("script", "trace"):
            try:
                with torch.no_grad():
                    saved = torch.jit.script(model) if mode == "script" else torch.jit.trace(model, inputs, strict=False, check_trace=False)
                    answers = flat(saved(*inputs))
            except Exception as error:  # noqa: BLE001: what PyTorch itself cannot do is no case
                print(f"{name} {mode}: {error!r}"[:300].replace("\n", " "), file=sys.stderr)
                continue
            saved.save(folder / f"{name}.{mode}.pt")
            np.savez(folder / f"{name}.{mode}.npz", **{f"in{i}": x.numpy() for i, x in enumerate(inputs)}, **{f"out{i}": x.numpy() for i, x in enumerate(answers)})


def check(folder, wanted):
    for stem in wanted:
        recorded = np.load(folder / f"{stem}.npz")
        try:
            model = torch.jit.load(folder / f"{stem}.back.pt")
            with torch.no_grad():
                answers = flat(model(*(torch.from_numpy(recorded[k]) for k in recorded if k.startswith("in"))))
            outs = [torch.from_numpy(recorded[k]) for k in recorded if k.startswith("out")]
            assert len(outs) == len(answers)
            print(stem, max(float((a - b).abs().max() / max(1.0, float(b.abs().max()))) for a, b in zip(answers, outs)))
        except Exception as error:  # noqa: BLE001: reported as the answer
            print(stem, "error", repr(error)[:300].replace("\n", " "))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    command, rest = sys.argv[1], sys.argv[2:]
    if command == "names":
        print(*names())
    else:
        {"save": save, "check": check}[command](Path(rest[0]), rest[1:])
