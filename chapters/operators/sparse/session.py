import torch

counts = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]], device="openreg")
print(counts.to_sparse())
print(counts.to_sparse_csr() @ torch.ones(3, 1, device="openreg"))

words = torch.tensor([7, 2, 7], device="openreg")
embedding = torch.nn.Embedding(1_000_000, 2, sparse=True, device="openreg")
embedding(words).sum().backward()
gradient = embedding.weight.grad
print(gradient._indices(), gradient.is_coalesced())
print(gradient.coalesce().values())
torch.optim.SGD([embedding.weight], lr=0.1).step()
