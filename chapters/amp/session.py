import torch

weight = torch.nn.Parameter(torch.eye(2, device="openreg"))
x = torch.ones(1, 2, device="openreg")
optimizer = torch.optim.SGD([weight], lr=0.5)
scaler = torch.amp.GradScaler("openreg", init_scale=8.0)

for factor in (1.0, float("inf")):
    with torch.autocast("openreg", dtype=torch.bfloat16):
        product = x @ weight
        print(product.dtype, product.exp().dtype, (product + x).dtype)
    optimizer.zero_grad()
    scaler.scale(product.sum() * factor).backward()
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale(), weight[0, 0].item())
