import torch

torch.device("tiny")
