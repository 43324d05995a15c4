# SPDX-License-Identifier: BSD-3-Clause
"""Models at the widths at which they were published, with two of their equal layers, and how their calls are recorded.

Of each operator at most five calls are kept, those that differ most.

.venv/bin/meson devenv -C build -w . .venv/bin/python tests/models/sizes.py calls.jsonl
"""

import collections
import json
import math
import sys
from pathlib import Path

import conftest  # noqa: F401
import timm
import torch
import transformers as hf
from programs import loss_of
from torch_openreg.calls import Call, recording

KEPT = 5  # calls of an operator
LAYERS = {"num_hidden_layers": 2}


def text(vocabulary, *shape):
    return torch.randint(1, vocabulary, shape)


def language(config, length=128):
    given = text(config.vocab_size, 2, length)
    model = hf.AutoModelForCausalLM.from_config(config)
    return model, {"input_ids": given, "labels": given}


def masked(config):
    given, there = text(config.vocab_size, 2, 128), torch.ones(2, 128, dtype=torch.int64)
    there[1, 96:] = 0
    model = hf.AutoModelForMaskedLM.from_config(config)
    return model, {"input_ids": given, "attention_mask": there, "labels": given}


def translation(config):
    given = {"input_ids": text(config.vocab_size, 2, 128), "labels": text(config.vocab_size, 2, 64)}
    return hf.AutoModelForSeq2SeqLM.from_config(config), given


def images(name, **options):
    return timm.create_model(name, **options).train(), {"x": torch.randn(2, 3, 224, 224)}


def sounds():
    model = hf.Wav2Vec2ForCTC(hf.Wav2Vec2Config(**LAYERS))
    return model, {"input_values": torch.randn(1, 16000), "labels": text(32, 1, 20)}


def speech():
    config = hf.WhisperConfig(encoder_layers=2, decoder_layers=2, vocab_size=51865)
    given = {"input_features": torch.randn(1, 80, 3000), "labels": text(51865, 1, 32)}
    return hf.WhisperForConditionalGeneration(config), given


MODELS = {
    "gpt2": lambda: language(hf.GPT2Config(n_layer=2)),
    "tinyllama": lambda: language(hf.LlamaConfig(
        **LAYERS, hidden_size=2048, intermediate_size=5632, num_attention_heads=32,
        num_key_value_heads=4, vocab_size=32000)),
    "qwen2 0.5b": lambda: language(hf.Qwen2Config(
        **LAYERS, hidden_size=896, intermediate_size=4864, num_attention_heads=14,
        num_key_value_heads=2, vocab_size=32000)),
    "mamba 130m": lambda: language(hf.MambaConfig(**LAYERS, hidden_size=768), length=32),
    "bert base": lambda: masked(hf.BertConfig(**LAYERS)),
    "distilbert": lambda: masked(hf.DistilBertConfig(n_layers=2)),
    "t5 small": lambda: translation(hf.T5Config(
        num_layers=2, pad_token_id=0, decoder_start_token_id=0)),
    "whisper tiny": speech,
    "wav2vec2 base": sounds,
    "vit base": lambda: images("vit_base_patch16_224", depth=2),
    "swin tiny": lambda: images("swin_tiny_patch4_window7_224", depths=(2, 2, 2, 2)),
    "resnet50": lambda: images("resnet50"),
    "convnext tiny": lambda: images("convnext_tiny"),
    "efficientnet b0": lambda: images("efficientnet_b0"),
    "mobilenet v3": lambda: images("mobilenetv3_large_100"),
}  # fmt: skip


def step(model, given, optimize):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of(model(**given)).backward()
    if optimize:
        optimizer.step()


def aspects(value, path=()):
    """What of a recorded call may lead a kernel another way, each with the argument that it is of."""
    if isinstance(value, dict) and isinstance(value.get("size"), list):
        size, stride = value["size"], value.get("stride")
        yield from [(path, "dtype", value["dtype"]), (path, "ones", tuple(n == 1 for n in size))]
        yield from [(path, "is strided", bool(stride)), (path, "is expanded", 0 in (stride or []))]
        yield path, "size", math.prod(size).bit_length() // 4
    elif isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from aspects(each, (*path, key))
    else:
        yield path, "value", value


def varied(lines):
    """Few calls of each operator, in their order. Each one adds the most aspects to those before, and is small if it can."""
    calls, kept = collections.defaultdict(dict), set()
    for line in lines:
        call = json.loads(line)
        calls[call["op"]][line] = set(aspects([call["args"], call["kwargs"]]))
    for left in calls.values():
        seen = set()
        for _ in range(min(KEPT, len(left))):
            line = max(left, key=lambda line: (len(left[line] - seen), -Call(line).elements()))
            seen |= left.pop(line)
            kept.add(line)
    return [line for line in lines if line in kept]


if __name__ == "__main__":
    made = {}
    for name in MODELS:
        torch.manual_seed(0)
        made[name] = MODELS[name]()
    with recording(sys.argv[1]):
        for name, (model, given) in made.items():
            step(model, given, optimize=name == "gpt2")  # one is enough: it is the same for all
    file = Path(sys.argv[1])
    file.write_text("\n".join(varied(file.read_text().splitlines())) + "\n")
