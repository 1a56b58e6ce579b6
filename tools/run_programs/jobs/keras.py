from answers import show
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy

keras.utils.set_random_seed(0)


def given(model, x):
    """Weights from a formula: keras draws them from generators of its own."""
    for i, w in enumerate(model.trainable_weights):
        n = int(numpy.prod(w.shape))
        w.assign((numpy.sin(numpy.arange(n) * 0.7 + i).reshape(w.shape) * 0.2).astype("float32"))
    return model


rng = numpy.random.default_rng(0)
x, y = rng.normal(size=(64, 8, 8, 3)).astype("float32"), rng.integers(0, 4, 64)
L = keras.layers
model = keras.Sequential([L.Input((8, 8, 3)), L.Conv2D(8, 3, activation="relu"), L.BatchNormalization(), L.MaxPooling2D(), L.SeparableConv2D(8, 2), L.Flatten(), L.Dense(4)])
given(model, x)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(x, y, epochs=2, batch_size=16, verbose=0, shuffle=False, validation_split=0.25)
show("convolutions", history.history)
show("evaluate", model.evaluate(x, y, verbose=0))
model.save("model.keras")
show("loaded", keras.models.load_model("model.keras").predict(x[:4], verbose=0))
tokens = L.Input((7,), dtype="int32")
h = L.Embedding(11, 8)(tokens)
h = h + L.MultiHeadAttention(2, 4)(h, h)
h = L.LayerNormalization()(h)
h = L.Bidirectional(L.LSTM(5, return_sequences=True))(h)
h = L.GRU(6)(h)
words = given(keras.Model(tokens, L.Dense(2, activation="softmax")(h)), None)
words.compile(keras.optimizers.SGD(0.1, momentum=0.9), "categorical_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
ids = rng.integers(0, 11, (32, 7))
labels = numpy.eye(2)[rng.integers(0, 2, 32)]
show("words", words.fit(ids, labels, epochs=2, batch_size=8, verbose=0, shuffle=False).history)
words.save_weights("w.weights.h5")
words.load_weights("w.weights.h5")
show("words again", words.predict(ids[:3], verbose=0))
for name in ("rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl", "lion", "adamw", "muon"):
    small = given(keras.Sequential([L.Input((3,)), L.Dense(4, activation="gelu"), L.Dense(1)]), None)
    small.compile(name, "mse")
    show(name, small.fit(x[:, 0, 0], x[:, 1, 1, :1], epochs=2, batch_size=16, verbose=0, shuffle=False).history["loss"])
ops = keras.ops
a = ops.convert_to_tensor(rng.normal(size=(4, 5)).astype("float32"))
for f in (ops.logsumexp, ops.softmax, ops.cumsum, ops.sort, ops.argsort, ops.median, ops.std, ops.qr, ops.svd, ops.erf, lambda v: ops.fft2((v, v))):
    out = f(a)
    show("operator", [ops.convert_to_numpy(ops.abs(o)) for o in (out if isinstance(out, (tuple, list)) else [out])])
show("resize", ops.convert_to_numpy(ops.image.resize(ops.convert_to_tensor(x[:2]), (5, 11), interpolation="bicubic")))
show("augmented", ops.convert_to_numpy(L.Rescaling(0.5)(L.CenterCrop(4, 4)(ops.convert_to_tensor(x[:2])))))
