from answers import show
import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

texts = ["the cat sat on the mat", "a dog ran to the cat", "the dog sat", "a cat ran on a mat"] * 2
words = sorted({w for t in texts for w in t.split()})
raw = Tokenizer(WordLevel({w: i for i, w in enumerate(["<pad>", "<unk>", "<eos>", *words])}, unk_token="<unk>"))
raw.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>")
config = GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, pad_token_id=0, eos_token_id=2, bos_token_id=2)
torch.manual_seed(0)
model = GPT2LMHeadModel(config)
common = {
    "output_dir": "out",
    "max_steps": 4,
    "per_device_train_batch_size": 2,
    "logging_steps": 1,
    "report_to": [],
    "learning_rate": 1e-2,
    "use_cpu": True,
    "save_strategy": "no",
    "bf16": False,
    "seed": 1,
    "dataloader_num_workers": 0,
    "disable_tqdm": True,
    "gradient_checkpointing": False,
}
trainer = SFTTrainer(model, args=SFTConfig(max_length=16, **common), train_dataset=Dataset.from_dict({"text": texts}), processing_class=tokenizer)
trainer.train()
show("sft", [[h.get(k) for k in ("loss", "grad_norm", "mean_token_accuracy", "entropy")] for h in trainer.state.log_history])
trainer.save_model("sft")
again = GPT2LMHeadModel.from_pretrained("sft").eval()
ids = torch.tensor([tokenizer("the cat")["input_ids"]])
show("again", again(ids).logits)
show("generated", again.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0))
data = Dataset.from_dict({"prompt": ["the cat", "a dog", "the dog", "a cat"], "chosen": [" sat on the mat", " ran to the cat", " sat", " ran"], "rejected": [" ran", " sat", " mat mat", " a a"]})
for kind in ("sigmoid", "ipo", "hinge"):
    trainer = DPOTrainer(
        GPT2LMHeadModel.from_pretrained("sft"),
        ref_model=GPT2LMHeadModel.from_pretrained("sft"),
        args=DPOConfig(beta=0.1, loss_type=[kind], max_length=16, **common),
        train_dataset=data,
        processing_class=tokenizer,
    )
    trainer.train()
    show(f"dpo {kind}", [[h.get(k) for k in ("loss", "rewards/margins", "logps/chosen", "grad_norm")] for h in trainer.state.log_history])
