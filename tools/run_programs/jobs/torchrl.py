from answers import show
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import Compose, DoubleToFloat, GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss, SoftUpdate
from torchrl.objectives.value import GAE

env = TransformedEnv(GymEnv("Pendulum-v1"), Compose(DoubleToFloat(), StepCounter(), RewardSum()))
env.set_seed(1)
network = TensorDictModule(torch.nn.Sequential(MLP(in_features=3, out_features=2, num_cells=[16]), NormalParamExtractor()), ["observation"], ["loc", "scale"])
actor = ProbabilisticActor(network, in_keys=["loc", "scale"], distribution_class=TanhNormal, distribution_kwargs={"low": -2.0, "high": 2.0}, return_log_prob=True)
critic = ValueOperator(MLP(in_features=3, out_features=1, num_cells=[16]), ["observation"])
with torch.no_grad():
    steps = env.rollout(20, actor)
show("rollout", [steps["observation"], steps["action"], steps["next", "reward"], steps["next", "episode_reward"][-1]])
advantage, loss_of = GAE(gamma=0.95, lmbda=0.9, value_network=critic), ClipPPOLoss(actor, critic, entropy_coeff=0.01)
optimizer = torch.optim.Adam(loss_of.parameters(), 1e-3)
for _ in range(2):
    advantage(steps)
    losses = loss_of(steps)
    loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show("loss", [loss, steps["advantage"]])
replay = TensorDictReplayBuffer(storage=LazyTensorStorage(50), batch_size=8)
replay.extend(steps)
show("replay", replay.sample()["observation"])
show("collected", [batch["next", "reward"] for batch in Collector(env, actor, frames_per_batch=16, total_frames=32)])
values = QValueActor(MLP(in_features=4, out_features=2, num_cells=[8]), spec=None, action_space="one_hot")
pole = GymEnv("CartPole-v1")
pole.set_seed(0)
loss_of = DQNLoss(values, action_space="one_hot", delay_value=True)
target = SoftUpdate(loss_of, eps=0.9)
loss = loss_of(pole.rollout(10, values))["loss"]
loss.backward()
target.step()
show("values", [loss, list(loss_of.parameters())])
