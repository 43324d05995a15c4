# SPDX-License-Identifier: BSD-3-Clause
"""Models of libraries that people install, tiny and with random weights.

Each entry of `MODELS` makes a module and its inputs on the CPU, always the same ones.
"""

import copy

import einops.layers.torch as einops_layers
import peft
import timm
import torch
import torch.nn as nn
import transformers as hf

VOCABULARY = 99
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODER = {**SMALL, "vocab_size": VOCABULARY, "intermediate_size": 64, "pad_token_id": 0}
IMAGE = {**SMALL, "intermediate_size": 64, "image_size": 32, "patch_size": 8}


def tokens(*shape):
    return torch.randint(1, VOCABULARY, shape)


def language(config):
    """A model that continues a text; the labels make it return a loss."""
    text = tokens(2, 12)
    return hf.AutoModelForCausalLM.from_config(config), {"input_ids": text, "labels": text}


def masked(config):
    """A model that fills gaps in a text, the second of which is padded."""
    text, there = tokens(2, 12), torch.ones(2, 12, dtype=torch.int64)
    there[1, 8:] = 0
    model = hf.AutoModelForMaskedLM.from_config(config)
    return model, {"input_ids": text, "attention_mask": there, "labels": text}


def translation(config):
    text = {"input_ids": tokens(2, 12), "labels": tokens(2, 7)}
    return hf.AutoModelForSeq2SeqLM.from_config(config), text


def whisper():
    config = hf.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_ffn_dim=64, max_source_positions=20, max_target_positions=20, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, suppress_tokens=None,
        begin_suppress_tokens=None,
    )  # fmt: skip
    sound = {"input_features": torch.randn(2, 8, 40), "labels": tokens(2, 7)}
    return hf.WhisperForConditionalGeneration(config), sound


def wav2vec2():
    config = hf.Wav2Vec2Config(
        **SMALL, vocab_size=VOCABULARY, intermediate_size=64, conv_dim=(16, 16),
        conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, apply_spec_augment=False,
    )  # fmt: skip
    return hf.Wav2Vec2ForCTC(config), {"input_values": torch.randn(2, 400), "labels": tokens(2, 5)}


def clip():
    config = hf.CLIPConfig(
        text_config={**DECODER, "max_position_embeddings": 16, "eos_token_id": 2, "bos_token_id": 1},
        vision_config=IMAGE, projection_dim=16,
    )  # fmt: skip
    given = {"input_ids": tokens(2, 7), "pixel_values": torch.randn(2, 3, 32, 32)}
    return hf.CLIPModel(config), {**given, "return_loss": True}


def classifier(config):
    given = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}
    return hf.AutoModelForImageClassification.from_config(config), given


def adapter():
    """LoRA: a frozen model with small trained matrices beside its own."""
    model, given = language(hf.LlamaConfig(**DECODER))
    lora = peft.LoraConfig(r=4, lora_dropout=0.0, target_modules=["q_proj", "v_proj"])
    return peft.get_peft_model(model, lora), given


def images(name, size=64, **options):
    model = timm.create_model(name, num_classes=5, drop_rate=0.0, **options).train()
    return model, {"x": torch.randn(2, 3, size, size)}


def patches():
    """An image cut into patches, mixed, and put together again, by einops' layers."""
    model = nn.Sequential(
        einops_layers.Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=8, q=8),
        nn.Linear(192, 32), nn.GELU(), nn.LayerNorm(32),
        einops_layers.EinMix("b n c -> b m c", weight_shape="n m", n=16, m=16),
        einops_layers.Reduce("b n c -> b c", "mean"), nn.Linear(32, 5),
    )  # fmt: skip
    return model, {"input": torch.randn(2, 3, 32, 32)}


MODELS = {
    "llama": lambda: language(hf.LlamaConfig(**DECODER, num_key_value_heads=2)),
    "mistral": lambda: language(
        hf.MistralConfig(**DECODER, num_key_value_heads=2, sliding_window=8)
    ),
    "mixtral": lambda: language(hf.MixtralConfig(**DECODER, num_key_value_heads=2, num_local_experts=4)),
    "qwen2": lambda: language(hf.Qwen2Config(**DECODER, num_key_value_heads=2)),
    "gemma": lambda: language(hf.GemmaConfig(**DECODER, head_dim=8, num_key_value_heads=1)),
    "phi": lambda: language(hf.PhiConfig(**DECODER)),
    "gpt2": lambda: language(hf.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4)),
    "gpt-neox": lambda: language(hf.GPTNeoXConfig(**DECODER)),
    "opt": lambda: language(hf.OPTConfig(
        **SMALL, vocab_size=VOCABULARY, ffn_dim=64, word_embed_proj_dim=32)),
    "bloom": lambda: language(hf.BloomConfig(
        vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)),
    "mamba": lambda: language(hf.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=4)),
    "bert": lambda: masked(hf.BertConfig(**DECODER)),
    "roberta": lambda: masked(hf.RobertaConfig(**DECODER)),
    "distilbert": lambda: masked(hf.DistilBertConfig(
        vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
    "electra": lambda: masked(hf.ElectraConfig(**DECODER, embedding_size=16)),
    "deberta": lambda: masked(hf.DebertaV2Config(
        **DECODER, relative_attention=True, pos_att_type=["p2c", "c2p"])),
    "t5": lambda: translation(hf.T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        pad_token_id=0, decoder_start_token_id=0)),
    "bart": lambda: translation(hf.BartConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_ffn_dim=64, pad_token_id=0, eos_token_id=2, decoder_start_token_id=2)),
    "whisper": whisper,
    "wav2vec2": wav2vec2,
    "vit": lambda: classifier(hf.ViTConfig(**IMAGE)),
    "clip": clip,
    "llama with lora": adapter,
    "resnet": lambda: images("resnet18"),
    "vit of timm": lambda: images("vit_tiny_patch16_224", img_size=64, depth=2),
    "convnext": lambda: images("convnext_atto"),
    "efficientnet": lambda: images("efficientnet_b0"),
    "mobilenet": lambda: images("mobilenetv3_small_050"),
    "swin": lambda: images(
        "swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=24,
        depths=(2, 2), num_heads=(2, 4), drop_path_rate=0.0),
    "mixer": lambda: images("mixer_s32_224", img_size=64),
    "patches of einops": patches,
}  # fmt: skip


def make(name):
    """The module of an entry, without dropout, and its inputs by name. They are the same each
    time."""
    torch.manual_seed(0)
    model, given = MODELS[name]()
    # No two devices draw the same numbers. The models of timm were made without dropout, and
    # have batch norms that are to be trained.
    return (model if isinstance(given.get("x"), torch.Tensor) else model.eval()), given


def to(device, given):
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in given.items()}


def loss_of(output):
    loss = getattr(output, "loss", None)
    return output.square().mean() if loss is None else loss


def train(model, given, device, compiled=False):
    """The losses of three steps, and the gradients of the first."""
    model = copy.deepcopy(model).to(device)
    if compiled:
        model.compile()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    losses, gradients = [], {}
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(model(**to(device, given)))
        loss.backward()
        named = model.named_parameters()
        gradients = gradients or {n: p.grad.cpu() for n, p in named if p.grad is not None}
        optimizer.step()
        losses.append(loss.detach().cpu())
    return losses, gradients
