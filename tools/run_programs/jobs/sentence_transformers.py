from answers import show
import torch
from sentence_transformers import CrossEncoder, InputExample, SentenceTransformer, losses, models, util
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

texts = ["a cat sits", "the cat sat on a mat", "dogs run fast", "a dog ran", "stocks fell today", "markets fell sharply"]
words = sorted({w for t in texts for w in t.split()})
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
raw = Tokenizer(WordPiece(vocab, unk_token="[UNK]"))
raw.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", model_max_length=16)
config = BertConfig(
    vocab_size=len(vocab), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)
torch.manual_seed(0)
BertModel(config).save_pretrained("bert")
tokenizer.save_pretrained("bert")
bert = models.Transformer("bert", max_seq_length=12)
for mode in ("mean", "cls", "max", "weightedmean", "lasttoken"):
    model = SentenceTransformer(modules=[bert, models.Pooling(16, pooling_mode=mode), models.Normalize()], device="cpu")
    show(mode, model.encode(texts, batch_size=3, show_progress_bar=False))
model = SentenceTransformer(modules=[bert, models.Pooling(16), models.Dense(16, 8, activation_function=torch.nn.Tanh())], device="cpu")
pairs = [InputExample(texts=[texts[i], texts[i + 1]], label=float(i % 4 == 0)) for i in range(0, 6, 2)]


def features():
    return [model.tokenize([p.texts[k] for p in pairs]) for k in range(2)]


labels = torch.tensor([p.label for p in pairs])
for loss in (
    losses.MultipleNegativesRankingLoss(model),
    losses.CosineSimilarityLoss(model),
    losses.ContrastiveLoss(model),
    losses.CoSENTLoss(model),
    losses.MatryoshkaLoss(model, losses.CosineSimilarityLoss(model), [8, 4]),
    losses.OnlineContrastiveLoss(model),
    losses.SoftmaxLoss(model, 8, 2),
):
    optimizer = torch.optim.AdamW(loss.parameters(), 1e-3)
    values = []
    for _ in range(3):
        value = loss(features(), labels.long() if isinstance(loss, losses.SoftmaxLoss) else labels)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value)
    show(type(loss).__name__, values)
model.save("saved")
again = SentenceTransformer("saved", device="cpu")
e = again.encode(texts, convert_to_tensor=True, show_progress_bar=False)
show("again", e)
show("similarity", again.similarity(e, e))
show("search", util.semantic_search(e[:2], e, top_k=3))
show("communities", util.community_detection(e, min_community_size=1, threshold=0.9))
torch.manual_seed(1)
BertForSequenceClassification(BertConfig.from_pretrained("bert", num_labels=1)).save_pretrained("cross")
tokenizer.save_pretrained("cross")
cross = CrossEncoder("cross", device="cpu", max_length=16)
show("cross", cross.predict([(texts[0], t) for t in texts]))
show("rank", cross.rank(texts[0], texts, top_k=3))
