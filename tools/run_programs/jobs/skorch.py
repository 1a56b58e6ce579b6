from answers import show
import numpy as np
import torch
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler


class Net(torch.nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(5, width), torch.nn.ReLU(), torch.nn.Linear(width, 2), torch.nn.Softmax(dim=-1))

    def forward(self, x):
        return self.layers(x)


x = np.random.randn(80, 5).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)
net = NeuralNetClassifier(Net, max_epochs=3, lr=0.1, verbose=0, callbacks=[LRScheduler("StepLR", step_size=1), EpochScoring("accuracy", name="score")])
net.fit(x, y)
show("history", [row["train_loss"] for row in net.history])
show("probabilities", net.predict_proba(x[:6]))
pipe = Pipeline([("scale", StandardScaler()), ("net", NeuralNetClassifier(Net, max_epochs=2, verbose=0, train_split=None))])
torch.manual_seed(0)
search = GridSearchCV(pipe, {"net__lr": [0.01, 0.1], "net__module__width": [4, 8]}, cv=2, scoring="accuracy")
search.fit(x, y)
show("search", [float(search.best_score_), search.best_params_])
torch.manual_seed(0)
regressor = NeuralNetRegressor(torch.nn.Linear, module__in_features=5, module__out_features=1, max_epochs=2, verbose=0, optimizer=torch.optim.Adam)
show("regression", regressor.fit(x, x[:, :1]).predict(x[:4]))
