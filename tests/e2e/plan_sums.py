"""A rank's memory by a second implementation of the sums: from a profile, and with nothing of
libmla's. What only libmla can say is not here: the workspace of its attention, and the arrays of
its own forward pass on a CPU."""
KV_BYTES = {
    "f32": lambda latent, rope: 4 * (latent + rope),
    "bf16": lambda latent, rope: 2 * (latent + rope),
    "fp8": lambda latent, rope: latent + rope,
    "fp8_g128": lambda latent, rope: latent + latent // 128 * 4 + 2 * rope,
}


def up(value, unit):
    return -(-value // unit)


def plain(value):
    """Out of {"value": .., "assumed": ".."}."""
    return value["value"] if isinstance(value, dict) and "value" in value else value


class Section:
    def __init__(self, profile, name):
        self.values = profile.get(name, {})

    def get(self, key, default=0):
        return plain(self.values.get(key, default))


class Config:
    """A config.json with one spelling of each key."""

    def __init__(self, raw):
        raw = raw.get("text_config", raw)
        first = lambda *keys, default=0: next(
            (raw[key] for key in keys if raw.get(key) is not None), default)
        self.vocab = raw["vocab_size"]
        self.d = raw["hidden_size"]
        self.layers = raw["num_hidden_layers"]
        self.mtp = first("num_nextn_predict_layers")
        self.heads = raw["num_attention_heads"]
        self.q_rank = first("q_lora_rank")
        self.latent = raw["kv_lora_rank"]
        self.nope, self.rope, self.v = (
            raw["qk_nope_head_dim"], raw["qk_rope_head_dim"], raw["v_head_dim"])
        self.dense = raw["intermediate_size"]
        self.experts = first("n_routed_experts", "num_experts")
        self.chosen = first("num_experts_per_tok", "num_experts_per_token")
        self.shared = first("n_shared_experts", "num_shared_experts")
        self.inner = first("moe_intermediate_size")
        self.first_moe = first("first_k_dense_replace")
        self.has_bias = raw.get("topk_method", "noaux_tc") == "noaux_tc"
        self.is_tied = first("tie_word_embeddings", default=False)
        self.expert_width = first("routed_expert_hidden_size", default=self.d)
        self.has_gate = first("mla_use_output_gate", default=False)
        self.span = first("attn_res_block_size")
        kda = raw.get("linear_attn_config")
        self.kda = {layer - 1 for layer in kda["kda_layers"]} if kda else set()
        self.kda_heads, self.kda_dim, self.conv = (
            (kda["num_heads"], kda["head_dim"], kda["short_conv_kernel_size"])
            if kda else (0, 0, 0))

    def is_moe(self, layer):
        return self.experts > 0 and layer >= self.first_moe


class Weights:
    """Adds tensors up: of one rank in bytes, of all in numbers."""

    def __init__(self, config, formats, ranks, expert_ranks):
        self.c, self.formats = config, formats
        self.ranks, self.expert_ranks = ranks, expert_ranks
        self.bytes = self.parameters = 0

    def add(self, kind, rows, columns=1, cut=None, copies=1):
        ranks = self.ranks // self.expert_ranks if kind == "experts" else self.ranks
        number = self.c.experts if kind == "experts" else 1
        held = up(number, self.expert_ranks) if kind == "experts" else 1
        self.parameters += rows * columns * copies * number
        rows = up(rows, ranks) if cut == "rows" else rows
        columns = up(columns, ranks) if cut == "columns" else columns
        self.bytes += self.size(kind, rows, columns) * copies * held

    def size(self, kind, rows, columns):
        name = "f32" if kind == "f32" else self.formats[kind]
        groups = up(columns, 32)
        return {
            "f32": 4 * rows * columns,
            "bf16": 2 * rows * columns,
            "fp8_block128": rows * columns + 4 * up(rows, 128) * up(columns, 128),
            "mxfp8": rows * (columns + groups),
            "mxfp4": rows * (up(columns, 2) + groups),
            "mxfp4_x4t": rows * (up(columns, 2) + 1 + up(groups, 8)),
            "int4_group32": rows * (up(columns, 2) + 2 * groups),
        }[name]

    def mla(self):
        c = self.c
        query = c.heads * (c.nope + c.rope)
        if c.q_rank:
            self.add("linears", c.q_rank, c.d)
            self.add("others", c.q_rank)
            self.add("linears", query, c.q_rank, "rows")
        else:
            self.add("linears", query, c.d, "rows")
        self.add("linears", c.latent + c.rope, c.d)
        self.add("others", c.latent)
        self.add("linears", c.heads * (c.nope + c.v), c.latent, "rows")
        self.add("linears", c.d, c.heads * c.v, "columns")

    def linear_attention(self):
        c = self.c
        width = c.kda_heads * c.kda_dim
        self.add("linears", width, c.d, "rows", copies=4)  # q, k, v, gate
        self.add("f32", width, c.conv, "rows", copies=3)
        self.add("linears", c.kda_dim, c.d)
        self.add("linears", width, c.kda_dim, "rows")
        self.add("linears", c.kda_heads, c.d, "rows")
        self.add("f32", c.kda_dim, copies=2)  # A_log, padded in the file, and a norm
        self.add("f32", width, cut="rows")
        self.add("linears", c.d, width, "columns")

    def mlp(self, kind, width, inner, copies=1):
        self.add(kind, inner, width, "rows", copies=2 * copies)
        self.add(kind, width, inner, "columns", copies=copies)

    def layer(self, i):
        c = self.c
        self.add("others", c.d, copies=2)
        if i in c.kda:
            self.linear_attention()
        else:
            self.mla()
        if c.is_moe(i):
            self.add("others", c.experts, c.d)
            if c.has_bias:
                self.add("f32", c.experts)
            self.mlp("experts", c.expert_width, c.inner)
            if c.shared:
                self.mlp("linears", c.d, c.inner * c.shared)
        else:
            self.mlp("linears", c.d, c.dense)

    def additions(self, i):
        c = self.c
        if c.has_gate and i not in c.kda:
            self.add("linears", c.heads * c.v, c.d, "rows")
        if c.expert_width != c.d and c.is_moe(i):
            self.add("linears", c.expert_width, c.d, "rows")
            self.add("linears", c.d, c.expert_width, "columns")
            self.add("others", c.expert_width)
        if c.span:
            self.add("others", c.d, copies=4)

    def target(self):
        c = self.c
        self.add("others", c.vocab, c.d, "rows", copies=1 if c.is_tied else 2)
        self.add("others", c.d, copies=3 if c.span else 1)
        for i in range(c.layers):
            self.layer(i)
            self.additions(i)
        return self

    def further(self):
        c = self.c
        for i in range(c.mtp):
            self.add("others", c.d, copies=3)
            self.add("others", c.d, 2 * c.d)
            self.add("others", c.vocab, c.d, "rows", copies=1 if c.is_tied else 2)
            self.layer(c.layers + i)
        return self


class Rank:
    """All classes of the fullest rank, but libmla's own arrays."""

    ORDER = ("context", "comm", "weights", "drafter", "session", "plan", "kv", "activations",
             "binding", "graph", "server", "other")

    def __init__(self, profile, concurrency=None):
        self.profile = profile
        self.c = Config(profile["config"])
        self.ranks = Section(profile, "ranks")
        self.serving = Section(profile, "serving")
        self.guess = Section(profile, "speculation")
        self.n = concurrency or self.serving.get("concurrency")
        self.tensor, self.context = self.ranks.get("tensor", 1), self.ranks.get("context", 1)
        self.page = self.serving.get("page_tokens", 64)
        self.tokens = self.serving.get("request_tokens") or self.serving.get(
            "max_context_tokens")
        self.steps = self.guess.get("rows_per_request") or self.guess.get("draft_tokens") + 1
        self.rows = self.n * self.steps
        formats = {key: Section(profile, "weights").get(key, "bf16")
                   for key in ("experts", "linears", "others")}
        arguments = (self.c, formats, self.tensor, self.ranks.get("expert", 1))
        self.weights = Weights(*arguments).target()
        self.further = Weights(*arguments).further()
        self.row_bytes = KV_BYTES[self.serving.get("kv_format")](self.c.latent, self.c.rope)
        self.latent_layers = self.c.layers - len(self.c.kda)

    def local(self, tokens):
        span = self.context * self.ranks.get("interleave", 1)
        share = span // self.context
        return tokens // span * share + min(tokens % span, share)

    def pages(self):
        return up(self.local(self.tokens), self.page)

    def state(self):
        c, keep = self.c, Section(self.profile, "linear_state")
        width = c.kda_heads // self.tensor * c.kda_dim
        one = (width * c.kda_dim * keep.get("value_bytes", 4) +
               3 * width * (c.conv - 1) * keep.get("conv_value_bytes", 2))
        return one * len(c.kda) * keep.get("states_per_request", 1) if c.kda else 0

    def request(self):
        return self.pages() * self.page * self.row_bytes * self.latent_layers + self.state()

    def kv(self):
        fixed = self.serving.get("kv_bytes")
        return max(fixed, self.n * self.state()) if fixed else self.n * self.request()

    def drafter(self):
        kind = self.guess.get("kind", "none")
        if kind == "mtp":
            rows = self.pages() * self.page * self.row_bytes * self.c.mtp
            return self.further.bytes + self.n * rows
        if kind == "model":
            window = self.guess.get("window_tokens") or self.tokens
            row = KV_BYTES[self.guess.get("kv_format", "bf16")](
                self.guess.get("latent_dim"), self.guess.get("rope_dim"))
            pages = up(min(window, self.tokens), self.page)
            rows = pages * self.page * row * self.guess.get("layers")
            return self.guess.get("weights_bytes") + self.n * rows
        return 0

    def comm(self):
        comm = Section(self.profile, "comm")
        whole = comm.get("communicators") * comm.get("communicator_bytes")
        if self.context > 1:
            heads = self.c.heads // self.tensor * self.context
            message = self.rows * heads * (self.c.latent + self.c.rope) * 2
            slot = up(message, 256) * 256 + up(self.rows * heads * 4, 256) * 256
            whole += comm.get("channels") * (2 * slot + comm.get("signal_bytes"))
        return whole

    def graph(self):
        graphs = Section(self.profile, "graphs")
        sizes = graphs.get("rows", None)
        if not sizes:
            return 0
        sizes = [size for size in sizes if size < self.rows] + [self.rows]
        return len(sizes) * graphs.get("bytes_each") + sum(sizes) * graphs.get("bytes_per_row")

    def row_width(self):
        c, ranks = self.c, self.tensor
        heads = c.heads // ranks
        attention = (c.q_rank + heads * (c.nope + c.rope) + c.latent + c.rope +
                     heads * c.v * (2 if c.has_gate else 1))
        if c.kda:
            attention = max(attention, 5 * c.kda_heads // ranks * c.kda_dim)
        mlp = 2 * (c.dense // ranks)
        if c.experts:
            cut = ranks // self.ranks.get("expert", 1)
            mlp = max(mlp, 2 * (c.inner * c.shared // ranks) +
                      c.chosen * (2 * (c.inner // cut) + c.expert_width))
        kept = up(c.layers, c.span) if c.span else 0
        return c.d * (2 + kept) + attention + mlp

    def activations(self):
        c = self.c
        device = Section(self.profile, "device")
        is_cuda = device.get("backend") == "cuda"
        value = 2 if is_cuda else 4
        rows = max(self.serving.get("prefill_tokens", 256), self.rows)
        heads = c.heads // self.tensor
        whole = rows * (self.row_width() * value + 4 * c.experts)
        whole += self.rows * up(c.vocab, self.tensor) * 4
        whole += 256 * self.context * (c.latent + c.rope + heads * (c.nope + c.v)) * value
        attended = heads * self.context
        output = 2 if is_cuda and self.context == 1 else 4
        if not is_cuda:
            return self.rows * up(c.vocab, self.tensor) * 4 + 4 * self.n * (
                self.serving.get("max_context_tokens") + c.vocab)
        whole += self.rows * attended * ((c.latent + c.rope) * value + c.latent * output + 4)
        table = up(self.local(self.serving.get("max_context_tokens")), self.page)
        return whole + 4 * (self.n * table + self.n + self.n + 1)

    def session(self, workspace):
        """What libmla tries the step's plan out on: one row a request and one page of a layer."""
        is_cuda = Section(self.profile, "device").get("backend") == "cuda"
        value = 2 if is_cuda else 4
        output = 2 if is_cuda and self.context == 1 else 4
        width = self.c.latent + self.c.rope
        attended = self.c.heads // self.tensor * self.context
        rows = self.n * attended * (width * value + self.c.latent * output + 4)
        scale = 4 if self.serving.get("kv_format") == "fp8" else 0
        words = self.n + self.n + self.n + 1  # tables of one page, lengths, starts
        return self.page * self.row_bytes + rows + 4 * words + scale + workspace

    def held(self, name):
        return Section(self.profile, "held").get(name + "_bytes")

    def classes(self, own):
        """Bytes of each class, with the bytes that are libmla's own to say."""
        found = {name: self.held(name) for name in ("context", "plan", "binding", "server",
                                                    "other")}
        found.update(weights=self.weights.bytes, kv=self.kv(), drafter=self.drafter(),
                     comm=self.comm(), graph=self.graph(), session=0,
                     activations=self.activations() + own)
        return found

    def refusal(self, classes, workspace):
        """The first class that does not fit: its name, what it needs and what is left."""
        left = Section(self.profile, "device").get("memory_bytes")
        fixed = self.serving.get("kv_bytes")
        for name in self.ORDER:
            need = self.session(workspace) if name == "session" else classes[name]
            room = left
            if name == "kv" and fixed:
                wanted = self.n * self.request()
                need = max(fixed, wanted)
                room = min(fixed, left) if wanted > fixed else left
            if need > room:
                return {"class": name, "required": need, "available": room,
                        "deficit": need - room}
            left = max(0, left - classes[name])
        return None
