import io
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            return torch.cond(y.sum() > 0, torch.relu, torch.neg, (y,))


program = torch.export.export(Model(), (torch.eye(2),))
print(program.graph)
torch.export.save(program, io.BytesIO())
