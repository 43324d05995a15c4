import numpy
import onnxruntime
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)
)
model = model.to("openreg").eval()
images = torch.randn(2, 1, 8, 8, device="openreg")
batch = ({0: torch.export.Dim("batch")},)
program = torch.onnx.export(model, (images,), dynamo=True, dynamic_shapes=batch, verbose=False)
print([node.op_type for node in program.model_proto.graph.node])

session = onnxruntime.InferenceSession(
    program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
)
(images_in,) = session.get_inputs()
print(images_in.name, images_in.shape)
for count in 2, 5:
    images = torch.randn(count, 1, 8, 8, device="openreg")
    (answer,) = session.run(None, {images_in.name: images.cpu().numpy()})
    print(count, numpy.allclose(answer, model(images).detach().cpu(), atol=1e-6))
