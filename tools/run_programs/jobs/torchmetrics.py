from answers import show
import torch
import torchmetrics
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC, MulticlassConfusionMatrix, MulticlassF1Score
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import MeanSquaredError, PearsonCorrCoef, R2Score, SpearmanCorrCoef
from torchmetrics.retrieval import RetrievalMAP
from torchmetrics.text import BLEUScore, Perplexity, WordErrorRate

collection = MetricCollection({"acc": MulticlassAccuracy(5), "f1": MulticlassF1Score(5), "auroc": MulticlassAUROC(5), "conf": MulticlassConfusionMatrix(5)})
for _ in range(3):
    show("step", collection(torch.randn(20, 5).softmax(-1), torch.randint(0, 5, (20,))))
show("classification", collection.compute())
x, y = torch.randn(30), torch.randn(30)
show("regression", [m(x, y) for m in (MeanSquaredError(), PearsonCorrCoef(), R2Score(), SpearmanCorrCoef())])
a, b = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
show("image", [PeakSignalNoiseRatio(data_range=1.0)(a, b), StructuralSimilarityIndexMeasure(data_range=1.0)(a, b)])
show("text", [BLEUScore()(["the cat sat on the mat"], [["the cat sat on a mat"]]), WordErrorRate()(["a b c"], ["a b d"]), Perplexity()(torch.randn(2, 4, 7), torch.randint(0, 7, (2, 4)))])
show("retrieval", RetrievalMAP()(torch.rand(8), torch.tensor([1, 0, 1, 0, 0, 1, 0, 1]).bool(), indexes=torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])))
show("state", torchmetrics.MeanMetric()(torch.arange(4.0)))
