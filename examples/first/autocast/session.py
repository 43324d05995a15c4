import torch

layer = torch.nn.Linear(4, 2).to("tiny")
x = torch.ones(3, 4, device="tiny")
with torch.autocast("tiny", dtype=torch.bfloat16):
    scores = layer(x)
    loss = torch.nn.functional.cross_entropy(
        scores, torch.zeros(3, dtype=torch.long, device="tiny")
    )
loss.backward()
print(scores.dtype, loss.dtype, layer.weight.grad.dtype)
