from answers import show
import logging

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import torch
from pytorch_forecasting import NBeats, TemporalFusionTransformer, TimeSeriesDataSet
from pytorch_forecasting.metrics import QuantileLoss

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
pl.seed_everything(0)
t = np.arange(40)
frame = pd.concat([pd.DataFrame({"t": t, "series": str(i), "value": np.sin(t / 3 + i) + 2, "other": np.cos(t / 5 + i)}) for i in range(3)], ignore_index=True)
common = {"time_idx": "t", "target": "value", "group_ids": ["series"], "max_encoder_length": 10, "max_prediction_length": 4}
rich = TimeSeriesDataSet(frame, **common, static_categoricals=["series"], time_varying_known_reals=["t"], time_varying_unknown_reals=["value", "other"], add_relative_time_idx=True)
plain = TimeSeriesDataSet(frame, **common, time_varying_unknown_reals=["value"])
kinds = {
    "tft": lambda: TemporalFusionTransformer.from_dataset(rich, hidden_size=8, lstm_layers=1, attention_head_size=2, dropout=0.0, hidden_continuous_size=4, loss=QuantileLoss(), learning_rate=0.01),
    "nbeats": lambda: NBeats.from_dataset(plain, widths=[8, 8], num_blocks=[1, 1], num_block_layers=[2, 2], expansion_coefficient_lengths=[3, 4], learning_rate=0.01, backcast_loss_ratio=0.1),
}
for name, make in kinds.items():
    try:
        pl.seed_everything(1)
        data = rich if name == "tft" else plain
        net = make()
        train, test = data.to_dataloader(train=False, batch_size=16), data.to_dataloader(train=False, batch_size=32)
        trainer = pl.Trainer(
            max_epochs=1, limit_train_batches=3, accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False, gradient_clip_val=0.1
        )
        trainer.fit(net, train)
        trainer.save_checkpoint("net.ckpt")
        again = type(net).load_from_checkpoint("net.ckpt", weights_only=False)
        with torch.no_grad():
            x, y = next(iter(test))
            net.eval(), again.eval()
            show(name, [net(x)["prediction"], again(x)["prediction"]])
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:300])
