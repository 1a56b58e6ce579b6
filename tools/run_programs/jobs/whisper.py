from answers import show
import numpy as np
import torch
import whisper
from whisper.decoding import DecodingOptions
from whisper.model import ModelDimensions, Whisper

torch.manual_seed(0)
size = ModelDimensions(n_mels=80, n_audio_ctx=1500, n_audio_state=32, n_audio_head=2, n_audio_layer=2, n_vocab=51865, n_text_ctx=448, n_text_state=32, n_text_head=2, n_text_layer=2)
model = Whisper(size)
model.decoder.positional_embedding.data.normal_()  # it has what memory had
audio = (0.1 * np.sin(np.arange(16000 * 3) * 0.05)).astype("float32")
mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(audio))
show("mel", mel)
tokens = torch.tensor([[50258, 50259, 50359, 400, 500]])
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
losses = []
for _ in range(3):
    out = model(mel[None], tokens)
    loss = torch.nn.functional.cross_entropy(out[0, :-1], tokens[0, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
show("training", losses)
model.eval()
torch.save({"dims": size.__dict__, "model_state_dict": model.state_dict()}, "model.pt")
again = whisper.load_model("model.pt", device="cpu")
show("language", sorted(again.detect_language(mel)[1].items(), key=lambda kv: -kv[1])[:3])
for options in ({}, {"beam_size": 2}, {"temperature": 0.7, "best_of": 2}, {"without_timestamps": True}, {"task": "translate", "language": "de"}):
    torch.manual_seed(1)
    found = again.decode(mel, DecodingOptions(fp16=False, sample_len=8, **options))
    show(str(options), [found.tokens, found.avg_logprob, found.no_speech_prob, found.compression_ratio])
text = again.transcribe(audio, fp16=False, sample_len=6, temperature=0.0, language="en")
show("transcribed", [text["text"], [[s["start"], s["end"], s["avg_logprob"]] for s in text["segments"]]])
words = again.transcribe(audio, fp16=False, sample_len=6, temperature=0.0, language="en", word_timestamps=True)
show("words", [[w["word"], w["start"], w["end"]] for s in words["segments"] for w in s["words"]])
