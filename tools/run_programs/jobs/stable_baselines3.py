import numpy as np
from answers import show
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

for A, env, kw, n in (
    (PPO, "CartPole-v1", dict(n_steps=64, batch_size=32, n_epochs=2), 128),
    (A2C, "CartPole-v1", {}, 50),
    (DQN, "CartPole-v1", dict(learning_starts=20, train_freq=2), 60),
    (SAC, "Pendulum-v1", dict(learning_starts=20, policy_kwargs=dict(net_arch=[16])), 40),
    (TD3, "Pendulum-v1", dict(learning_starts=20, policy_kwargs=dict(net_arch=[16])), 40),
):
    m = A("MlpPolicy", env, seed=0, device="cpu", **kw)
    m.learn(n)
    obs = np.zeros((2, m.observation_space.shape[0]), dtype="float32")
    show(A.__name__, m.predict(obs, deterministic=True)[0])
    show("w", [p for p in m.policy.parameters()][-2:])
    m.save("m")
    m2 = A.load("m")
    show("re", m2.predict(obs, deterministic=True)[0])
