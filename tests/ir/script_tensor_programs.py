"""Programs of tensors for test_script_programs.py: arguments are nested lists of floats, each becomes a tensor."""

PROGRAMS = {
    "tensor arithmetic": (
        """
def f(x, y):
    z = x + y * 2 - 1
    z = z / 2 + x.sum() + (x @ y) - (-x)
    return z, x > y, x == y, x[0] * 3, 2 - x, x ** 2
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.0], [3.0, 5.0]])],
    ),
    "in place": (
        """
def f(x, y):
    z = x
    x += y
    x *= 2
    x -= 1
    x /= 4
    x[0] += 5
    x[1, 0] *= 3
    return x, z
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.0], [3.0, 5.0]])],
    ),
    "indexing": (
        """
def f(x, y):
    a = x[1]
    b = x[1, 0]
    c = x[:, 1]
    d = x[..., 0]
    e = x[None, 0:1, :, None]
    g = x[x > y]
    h = x[::2, -1]
    i = x[..., None]
    j = x[None, ..., 0, None]
    k = x[[1, 0]]
    l = x[:, [0]]
    return a, b, c, d, e, g, h, i, j, k, l
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 5.0], [2.0, 5.0]])],
    ),
    "subscript assignment": (
        """
def f(x, y):
    z = x.clone()
    z[0] = 7
    z[1, 1] = y[0, 0]
    w = x.clone()
    w[:, 0] = y[:, 1]
    v = x.clone()
    v[x > y] = -1
    u = x.clone()
    u[x > 2] += 10
    t = x.clone()
    t[...] = 0.5
    return z, w, v, u, t
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 5.0], [2.0, 5.0]])],
    ),
    "tensor conditions": (
        """
def f(x, y):
    if x.sum() > y.sum():
        z = x
    else:
        z = y
    n = 0
    while z.sum() < 100:
        z = z * 2
        n += 1
        if z.max() > 60:
            break
    return z, n, 1 if x.sum() > 3 else 2, not bool(x.sum() > 3)
""",
        [([[1.0, 2.0]], [[0.5, 5.0]]), ([[10.0, 2.0]], [[0.5, 5.0]])],
    ),
    "over a tensor": (
        """
def f(x, y):
    s = 0.0
    rows: List[torch.Tensor] = []
    for row in x:
        rows.append(row * 2)
        s += float(row.sum())
    for i in range(x.size(0)):
        s += float(x[i, 0])
    return torch.stack(rows), s, len(x), x.shape[0], x.dim()
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5]])],
    ),
    "numbers of tensors": (
        """
def f(x, y):
    return int(x.sum()), float(y.sum()), bool(x.sum() > 1), x.sum().item()
""",
        [([[1.0, 2.0]], [[0.5]])],
    ),
    "functions and keywords": (
        """
def f(x, y):
    a = torch.add(x, y, alpha=2)
    b = torch.relu(x - 2).sum(dim=[0])
    c = x.view(-1).unsqueeze(0).transpose(0, 1)
    d = torch.zeros([2, 2], dtype=torch.float32) + torch.ones(2, 2)
    e, i = x.max(dim=1)
    g = torch.cat([x, y], dim=0)
    return a, b, c, d, e, i, g, x.mean(), torch.nn.functional.softmax(x, dim=1)
""",
        [([[1.0, 2.0], [3.0, 4.0]], [[0.5, 5.0], [2.0, 5.0]])],
    ),
    "early return": (
        """
def f(x, y):
    for i in range(5):
        if float(x.sum()) > 20:
            return x
        x = x + y
    return x * 0
""",
        [([[1.0, 2.0]], [[0.5, 5.0]]), ([[10.0, 2.0]], [[0.0, 0.0]])],
    ),
}
