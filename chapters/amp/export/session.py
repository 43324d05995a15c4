import torch
from torch_openreg.export import use_our_pass


class Model(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("openreg", dtype=torch.bfloat16):
            y = x @ x
            with torch.no_grad():
                z = torch.relu(y)
            return y @ z


x = torch.eye(2, device="openreg", requires_grad=True)
with use_our_pass():
    torch.export.save(torch.export.export(Model(), (x,)), "model.pt2")
program = torch.export.load("model.pt2")
print(program.module()(x).dtype)
print(program.graph)
print(program.graph_module.autocast_graph_0.graph)
