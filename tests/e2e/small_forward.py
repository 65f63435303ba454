"""The forward pass of the deepseek_v3 family in NumPy and double precision, as its paper and
the published code define it: no cache, no absorption, all positions at once."""
import math

import numpy as np

import small_checkpoint


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * weight


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def magnitude(factor, mscale):
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def yarn_of(config):
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    return scaling if kind == "yarn" else None


def theta_of(config):
    return (config.get("rope_parameters") or config).get("rope_theta", config.get("rope_theta"))


def pair_of_turns(config, turns):
    """The pair whose wave makes this many turns over the original context."""
    original = yarn_of(config)["original_max_position_embeddings"]
    theta = theta_of(config)
    return (config["qk_rope_head_dim"] * math.log(original / (turns * 2 * math.pi))
            / (2 * math.log(theta)))


def inverse_frequencies(config):
    dim, yarn = config["qk_rope_head_dim"], yarn_of(config)
    pairs = np.arange(dim // 2)
    plain = theta_of(config) ** (-2.0 * pairs / dim)
    if not yarn:
        return plain
    low = max(math.floor(pair_of_turns(config, yarn.get("beta_fast", 32))), 0)
    high = min(math.ceil(pair_of_turns(config, yarn.get("beta_slow", 1))), dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((pairs - low) / (high - low), 0, 1)
    return plain / yarn["factor"] * ramp + plain * (1 - ramp)


def rotation(config, num):
    """cos and sin [num][R/2]."""
    yarn = yarn_of(config)
    angles = np.outer(np.arange(num), inverse_frequencies(config))
    scale = 1.0
    if yarn:
        scale = (magnitude(yarn["factor"], yarn.get("mscale", 1.0))
                 / magnitude(yarn["factor"], yarn.get("mscale_all_dim", 0.0)))
    return np.cos(angles) * scale, np.sin(angles) * scale


def rotate(config, x, turn):
    """x: [T][...][R]. Real and imaginary parts are neighbours, or half a vector apart."""
    half = x.shape[-1] // 2
    is_interleaved = config.get("rope_interleave", True)
    first = x[..., 0::2] if is_interleaved else x[..., :half]
    second = x[..., 1::2] if is_interleaved else x[..., half:]
    shape = (len(x),) + (1,) * (x.ndim - 2) + (half,)
    cos, sin = turn[0].reshape(shape), turn[1].reshape(shape)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def softmax_scale(config):
    scale = (config["qk_nope_head_dim"] + config["qk_rope_head_dim"]) ** -0.5
    yarn = yarn_of(config)
    if yarn and yarn.get("mscale_all_dim"):
        scale *= magnitude(yarn["factor"], yarn["mscale_all_dim"]) ** 2
    return scale


class Layer:
    def __init__(self, config, tensors, index):
        self.config, self.index = config, index
        prefix = f"model.layers.{index}."
        self.tensors = {name[len(prefix):]: value.astype(np.float64)
                        for name, value in tensors.items() if name.startswith(prefix)}

    def linear(self, name, x):
        y = x @ self.tensors[name + ".weight"].T
        return y + self.tensors.get(name + ".bias", 0.0)

    def norm(self, name, x, eps):
        return rms_norm(x, self.tensors[name + ".weight"], eps)

    def queries(self, x):
        latent_eps = self.config.get("latent_norm_eps", 1e-6)
        if self.config["q_lora_rank"] is None:
            return self.linear("self_attn.q_proj", x)
        low = self.linear("self_attn.q_a_proj", x)
        return self.linear("self_attn.q_b_proj", self.norm("self_attn.q_a_layernorm", low,
                                                           latent_eps))

    def attention(self, x):
        c, num = self.config, len(x)
        heads, nope, latent = c["num_attention_heads"], c["qk_nope_head_dim"], c["kv_lora_rank"]
        turn = rotation(c, num)
        q = self.queries(x).reshape(num, heads, -1)
        a = self.linear("self_attn.kv_a_proj_with_mqa", x)
        low = self.norm("self_attn.kv_a_layernorm", a[:, :latent], c.get("latent_norm_eps", 1e-6))
        kv = self.linear("self_attn.kv_b_proj", low).reshape(num, heads, -1)
        q_rope = rotate(c, q[..., nope:], turn)
        k_rope = rotate(c, a[:, latent:], turn)
        scores = q[..., :nope].transpose(1, 0, 2) @ kv[..., :nope].transpose(1, 2, 0)
        scores += q_rope.transpose(1, 0, 2) @ k_rope.T
        scores = np.where(np.tri(num, dtype=bool), scores * softmax_scale(c), -np.inf)
        out = softmax(scores) @ kv[..., nope:].transpose(1, 0, 2)
        return self.linear("self_attn.o_proj", out.transpose(1, 0, 2).reshape(num, -1))

    def mlp(self, prefix, x):
        gate = self.linear(prefix + "gate_proj", x)
        up = self.linear(prefix + "up_proj", x)
        return self.linear(prefix + "down_proj", gate / (1 + np.exp(-gate)) * up)

    def route(self, x):
        """Weights [T][E], 0 for those that are not chosen."""
        c = self.config
        logits = x @ self.tensors["mlp.gate.weight"].T
        is_sigmoid = c.get("scoring_func", "sigmoid") == "sigmoid"
        scores = 1 / (1 + np.exp(-logits)) if is_sigmoid else softmax(logits)
        method = c.get("topk_method", "noaux_tc")
        is_v3 = method == "noaux_tc"
        rank = scores + self.tensors["mlp.gate.e_score_correction_bias"] if is_v3 else scores
        if method != "greedy" and c["n_group"] > 1:
            rank = keep_groups(rank, c["n_group"], c["topk_group"], 2 if is_v3 else 1)
        chosen = np.argsort(-rank, -1, kind="stable")[:, :c["num_experts_per_tok"]]
        mask = np.zeros_like(scores)
        np.put_along_axis(mask, chosen, 1.0, -1)
        return self.scaled(scores * mask, is_v3)

    def scaled(self, weights, is_v3):
        c = self.config
        is_normed = c.get("norm_topk_prob", True) and (is_v3 or c["num_experts_per_tok"] > 1)
        if is_normed:
            weights = weights / (weights.sum(-1, keepdims=True) + 1e-20)
        if is_v3 or not is_normed:
            weights = weights * c.get("routed_scaling_factor", 1.0)
        return weights

    def experts(self, x):
        out = np.zeros_like(x)
        weights = self.route(x)
        for expert in range(self.config["n_routed_experts"]):
            rows = np.nonzero(weights[:, expert])[0]
            if len(rows):
                out[rows] += (weights[rows, expert, None]
                              * self.mlp(f"mlp.experts.{expert}.", x[rows]))
        if self.config.get("n_shared_experts"):
            out += self.mlp("mlp.shared_experts.", x)
        return out

    def forward(self, h):
        eps = self.config["rms_norm_eps"]
        h = h + self.attention(self.norm("input_layernorm", h, eps))
        x = self.norm("post_attention_layernorm", h, eps)
        is_moe = small_checkpoint.is_moe(self.config, self.index)
        return h + (self.experts(x) if is_moe else self.mlp("mlp.", x))


def keep_groups(rank, num_groups, num_kept, num_best):
    """-inf for the experts of all groups but the best, by the sum of a group's best."""
    groups = rank.reshape(len(rank), num_groups, -1)
    best = np.sort(groups, -1)[..., ::-1][..., :num_best].sum(-1)
    order = np.argsort(-best, -1, kind="stable")[:, num_kept:]
    groups = groups.copy()
    for row, lost in enumerate(order):
        groups[row, lost] = -np.inf
    return groups.reshape(rank.shape)


def log_probabilities(config, tensors, tokens):
    """[T][vocab]: row t is of the token after tokens[t]."""
    embedding = tensors["model.embed_tokens.weight"].astype(np.float64)
    head = tensors.get("lm_head.weight", embedding).astype(np.float64)
    h = embedding[tokens]
    for layer in range(config["num_hidden_layers"]):
        h = Layer(config, tensors, layer).forward(h)
    h = rms_norm(h, tensors["model.norm.weight"].astype(np.float64), config["rms_norm_eps"])
    logits = h @ head.T
    most = logits.max(-1, keepdims=True)
    return logits - most - np.log(np.exp(logits - most).sum(-1, keepdims=True))
