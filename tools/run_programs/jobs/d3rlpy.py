from answers import show
import d3rlpy
import numpy as np

from d3rlpy.dataset import MDPDataset

obs = np.random.RandomState(0).randn(200, 4).astype(np.float32)
term = np.zeros(200)
term[19::20] = 1
cont = MDPDataset(obs, np.random.RandomState(1).uniform(-1, 1, (200, 2)).astype(np.float32), np.random.RandomState(2).randn(200).astype(np.float32), term)
disc = MDPDataset(obs, np.random.RandomState(1).randint(0, 3, (200, 1)), np.random.RandomState(2).randn(200).astype(np.float32), term)
ALGORITHMS = {
    "CQL": cont, "TD3PlusBC": cont, "IQL": cont, "AWAC": cont, "BCQ": cont, "SAC": cont, "DiscreteCQL": disc, "DQN": disc, "DoubleDQN": disc, "DiscreteSAC": disc,
    "NFQ": disc, "DiscreteBC": disc,
}  # fmt: skip
for name, ds in ALGORITHMS.items():
    d3rlpy.seed(1)
    algo = getattr(d3rlpy.algos, name + "Config")(batch_size=16).create(device="cpu:0")
    algo.build_with_dataset(ds)
    algo.fit(ds, n_steps=6, n_steps_per_epoch=3, show_progress=False, logger_adapter=d3rlpy.logging.NoopAdapterFactory())
    show(name, [algo.predict(obs[:5]), algo.predict_value(obs[:5], algo.predict(obs[:5])) if "BC" not in name else 0])
