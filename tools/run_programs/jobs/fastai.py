import numpy as np
import pandas as pd
import torch
from answers import show
from fastai.tabular.all import Adam, Categorify, FillMissing, Normalize, TabularDataLoaders, accuracy, ranger, set_seed, tabular_learner
from fastai.vision.all import FocalLossFlat, TensorImage

set_seed(0)
df = pd.DataFrame(dict(a=np.random.choice(list("xyz"), 60), c=np.random.randn(60), d=np.random.randn(60)))
df["y"] = (df.c > 0).map({True: "p", False: "n"})
dls = TabularDataLoaders.from_df(
    df,
    ".",
    procs=[Categorify, FillMissing, Normalize],
    cat_names=["a"],
    cont_names=["c", "d"],
    y_names="y",
    bs=16,
    valid_idx=list(range(12)),
    device="cpu",
    num_workers=0,
)
l = tabular_learner(dls, layers=[8, 4], metrics=accuracy)
with l.no_bar(), l.no_logging():
    l.fit_one_cycle(2, 1e-2)
show("rec", [float(v) for v in l.recorder.values[-1]])
show("p", l.get_preds()[0])
l.save("m")
l.load("m")
show("lr", l.recorder.lrs)
x = TensorImage(torch.rand(2, 3, 8, 8))
show("t", [type(x + 1).__name__, type(x[0]).__name__, x.mean()])
from fastai.vision.models.xresnet import xresnet18

m = xresnet18(n_out=3).eval()
show("x", m(torch.randn(1, 3, 32, 32)))
show("fl", FocalLossFlat()(torch.randn(4, 3), torch.tensor([0, 1, 2, 0])))
show("opt", [type(o).__name__ for o in (Adam(l.model.parameters(), 1e-3), ranger(l.model.parameters(), 1e-3))])
