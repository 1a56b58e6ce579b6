from answers import show
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, TransformerConv, global_add_pool, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, scatter, softmax, subgraph, to_dense_adj, to_undirected

edges = to_undirected(torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5]]))
x, y = torch.randn(6, 8), torch.tensor([0, 1, 0, 1, 0, 1])


class Net(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.first, self.second = kind(8, 16), kind(16, 2)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges).log_softmax(-1)


kinds = {"gcn": GCNConv, "gat": GATConv, "sage": SAGEConv, "transformer": TransformerConv, "gin": lambda a, b: GINConv(torch.nn.Linear(a, b))}
for name, kind in kinds.items():
    torch.manual_seed(3)
    net = Net(kind)
    optimizer, losses = torch.optim.Adam(net.parameters(), lr=0.01), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(net(x, edges), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    show(name, losses)
graphs = [Data(x=torch.randn(n, 8), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([n % 2])) for n in (3, 4, 5, 6)]
for batch in DataLoader(graphs, batch_size=2, shuffle=True):
    show("batch", [batch.batch, batch.ptr, global_mean_pool(batch.x, batch.batch), global_add_pool(batch.x, batch.batch)])
show("batched", [g.num_nodes for g in Batch.from_data_list(graphs).to_data_list()])
show("utils", [degree(edges[0]), add_self_loops(edges)[0], scatter(x[edges[0]], edges[1], reduce="max"), softmax(x[:, 0][edges[0]], edges[1]), to_dense_adj(edges), subgraph([0, 1, 2], edges)[0]])
