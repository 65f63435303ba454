"""Writes small random checkpoints of the deepseek_v3 family: the three files of a model
directory, byte-level tokens without merges, weights partly bf16 and partly f32."""
import json
import os
import struct

import numpy as np

import storage

BYTES, BOS, VOCAB = 256, 256, 260
BASE = dict(model_type="deepseek_v3", vocab_size=VOCAB, hidden_size=48, intermediate_size=80,
            num_hidden_layers=2, num_attention_heads=4, q_lora_rank=40, kv_lora_rank=64,
            qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=24, hidden_act="silu",
            max_position_embeddings=2048, rms_norm_eps=1e-3, rope_theta=1e4, rope_scaling=None,
            bos_token_id=BOS, eos_token_id=None)
EXPERTS = dict(n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
               n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1,
               norm_topk_prob=True, routed_scaling_factor=2.5)


def is_moe(config, layer):
    """Layer i is MoE iff i >= first_k_dense_replace and i % moe_layer_freq == 0."""
    return (config.get("n_routed_experts", 0) > 0 and layer >= config["first_k_dense_replace"]
            and layer % config.get("moe_layer_freq", 1) == 0)


def attention_shapes(c):
    heads, hidden, rope = c["num_attention_heads"], c["hidden_size"], c["qk_rope_head_dim"]
    latent, nope, value = c["kv_lora_rank"], c["qk_nope_head_dim"], c["v_head_dim"]
    rank, bias = c["q_lora_rank"], c.get("attention_bias", False)
    yield "kv_a_proj_with_mqa.weight", (latent + rope, hidden)
    yield "kv_a_layernorm.weight", (latent,)
    yield "kv_b_proj.weight", (heads * (nope + value), latent)
    yield "o_proj.weight", (hidden, heads * value)
    if rank is None:
        yield "q_proj.weight", (heads * (nope + rope), hidden)
    else:
        yield "q_a_proj.weight", (rank, hidden)
        yield "q_a_layernorm.weight", (rank,)
        yield "q_b_proj.weight", (heads * (nope + rope), rank)
    if bias:
        yield "kv_a_proj_with_mqa.bias", (latent + rope,)
        yield "o_proj.bias", (hidden,)
    if bias and rank is not None:
        yield "q_a_proj.bias", (rank,)


def mlp_shapes(prefix, hidden, width):
    yield prefix + "gate_proj.weight", (width, hidden)
    yield prefix + "up_proj.weight", (width, hidden)
    yield prefix + "down_proj.weight", (hidden, width)


def moe_shapes(c):
    hidden, width, shared = c["hidden_size"], c["moe_intermediate_size"], c["n_shared_experts"]
    yield "gate.weight", (c["n_routed_experts"], hidden)
    if c.get("topk_method", "noaux_tc") == "noaux_tc":
        yield "gate.e_score_correction_bias", (c["n_routed_experts"],)
    for expert in range(c["n_routed_experts"]):
        yield from mlp_shapes(f"experts.{expert}.", hidden, width)
    if shared:
        yield from mlp_shapes("shared_experts.", hidden, shared * width)


def shapes(c):
    """(name, shape) of every tensor that the config asks for."""
    hidden = c["hidden_size"]
    yield "model.embed_tokens.weight", (c["vocab_size"], hidden)
    yield "model.norm.weight", (hidden,)
    if not c.get("tie_word_embeddings", False):
        yield "lm_head.weight", (c["vocab_size"], hidden)
    for layer in range(c["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (hidden,)
        yield prefix + "post_attention_layernorm.weight", (hidden,)
        for name, shape in attention_shapes(c):
            yield prefix + "self_attn." + name, shape
        mlp = moe_shapes(c) if is_moe(c, layer) else mlp_shapes("", hidden,
                                                                c["intermediate_size"])
        for name, shape in mlp:
            yield prefix + "mlp." + name, shape


def random_tensor(rng, name, shape):
    """Large enough that attention is sharp, and that each part changes the answer."""
    values = rng.standard_normal(shape)
    if name.endswith("norm.weight"):
        return 1 + 0.3 * values
    if name.endswith("correction_bias"):
        return 0.4 * values - 2.0  # sigmoid scores plus this are below 0, nearly always
    if name.endswith(".bias"):
        return 0.5 * values
    if name.endswith("mlp.gate.weight"):
        return 3.0 * values / np.sqrt(shape[1])
    if name == "model.embed_tokens.weight":
        return 0.7 * values
    gain = 2.0 if "q_" in name or "kv_" in name else 1.0
    return gain * values / np.sqrt(shape[-1])


def random_tensors(config, seed):
    """name -> f32 array; every second one holds bf16 values only."""
    rng = np.random.default_rng(seed)
    made = {}
    for i, (name, shape) in enumerate(shapes(config)):
        values = random_tensor(rng, name, shape).astype(np.float32)
        made[name] = storage.bf16(values) if i % 2 else values
    return made


def encode(values):
    bits = np.ascontiguousarray(values, "<f4").view("<u4")
    if np.any(bits & 0xFFFF):
        return "F32", bits.tobytes()
    return "BF16", (bits >> 16).astype("<u2").tobytes()


def write_safetensors(path, tensors):
    header, data = {}, []
    at = 0
    typed = {name: encode(values) for name, values in tensors.items()}
    for name in sorted(typed, key=lambda n: (typed[n][0] == "BF16", n)):  # aligned that way
        dtype, raw = typed[name]
        header[name] = dict(dtype=dtype, shape=list(tensors[name].shape),
                            data_offsets=[at, at + len(raw)])
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def write_weights(directory, tensors, num_shards):
    if num_shards == 1:
        write_safetensors(os.path.join(directory, "model.safetensors"), tensors)
        return
    names = sorted(tensors)
    where = {}
    for shard in range(num_shards):
        file = f"model-{shard + 1:05d}-of-{num_shards:05d}.safetensors"
        mine = names[shard::num_shards]
        write_safetensors(os.path.join(directory, file), {n: tensors[n] for n in mine})
        where.update({name: file for name in mine})
    write_json(directory, "model.safetensors.index.json", dict(metadata={}, weight_map=where))


def write_json(directory, name, value):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def stand_ins():
    """The printable character that stands for each byte in a byte-level vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spare = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(BYTES)]


def tokenizer():
    special = [dict(id=BOS + i, content=f"<{i}>", single_word=False, lstrip=False,
                    rstrip=False, normalized=False, special=True) for i in range(VOCAB - BOS)]
    split = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False)
    vocab = {text: byte for byte, text in enumerate(stand_ins())}
    return dict(version="1.0", added_tokens=special, normalizer=None, pre_tokenizer=split,
                decoder=split, model=dict(type="BPE", vocab=vocab, merges=[]))


def write(directory, config, tensors, num_shards=1):
    write_json(directory, "config.json", config)
    write_json(directory, "tokenizer.json", tokenizer())
    write_json(directory, "tokenizer_config.json", dict(bos_token="<0>", add_bos_token=True))
    write_weights(directory, tensors, num_shards)
