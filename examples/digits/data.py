"""The handwritten digits of scikit-learn: 1,797 real scans, 8 x 8 grey values 0..16, split once and for all."""

import cresset


def load():
    """(train images, train labels, test images, test labels); images are float32 (N, 1, 8, 8) in [0, 1]."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = cresset.from_numpy((digits.images / 16.0).astype("float32")).unsqueeze(1)
    labels = cresset.from_numpy(digits.target.astype("int64"))
    order = cresset.randperm(len(labels), generator=cresset.Generator().manual_seed(1))
    held_out = len(labels) // 4
    test, train = order[:held_out], order[held_out:]
    return images[train], labels[train], images[test], labels[test]
