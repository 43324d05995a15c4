# OPENREG_SCHEDULE=seed:0
import torch

x = torch.ones(32, 32, device="openreg")  # A batch. Its block is there, and its numbers will be.
w = torch.ones(32, 32, device="openreg", requires_grad=True)  # The parameters.
h = x @ w  # The product has a block, although nothing has been computed yet.
loss = h.relu().square().mean()  # Three kernels. Autograd keeps the result that it will need.
loss.backward()  # Autograd enqueues the gradients, and gives up what it kept.
with torch.no_grad():
    w -= 0.1 * w.grad  # The product was freed again, and its block is free: one stream uses it.
del h, loss  # The memory is free for the host, before the device has begun to write it.
first = w[0, 0].item()  # Here the host needs a number, so here it waits.
