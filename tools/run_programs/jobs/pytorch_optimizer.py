from answers import show
import pytorch_optimizer
import torch

for name in sorted(pytorch_optimizer.get_supported_optimizers()):
    try:
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
        kind = pytorch_optimizer.load_optimizer(name)
        optimizer = kind(net.parameters(), lr=1e-2)
        x, y = torch.randn(8, 4), torch.randn(8, 2)
        losses = []
        for _ in range(4):

            def closure():
                optimizer.zero_grad()
                loss = (net(x) - y).square().mean()
                loss.backward(create_graph="hessian" in name or "sophia" in name)
                return loss

            losses.append(optimizer.step(closure))
        optimizer.load_state_dict(optimizer.state_dict())
        show(name, [losses, closure()])
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:200])
