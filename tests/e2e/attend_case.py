"""A made-up call of `mla attend`, its files, and what must come out, in double precision."""
import json
import os

import numpy as np

import storage

GARBAGE = np.array([-1, -(2**31), 2**31 - 1, 2**30], np.int32)


class Case:
    """lens and rows: per request. Pages are dealt in random order; table slots past a
    request's length hold garbage, and every row that nobody may read holds NaN."""

    def __init__(self, rng, lens, rows, heads=4, kv_format="f32", query_dtype="f32", latent=512,
                 rope=64, page=16, causal=True, window=0, spare_slots=2):
        self.json = dict(heads=heads, latent_dim=latent, rope_dim=rope, page_tokens=page,
                         kv_format=kv_format, query_dtype=query_dtype,
                         softmax_scale=float(np.float32(1 / np.sqrt(latent / 4 + rope))),
                         causal=causal, window=window)
        self.lens = np.array(lens, np.int32)
        self.starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)
        self.kv_scale = np.array([0.03125 * 1.25], np.float32)
        self.query_scale = np.array(0.0625 * 1.5, np.float32)
        width = latent + rope
        self.q = rng.standard_normal((self.starts[-1], heads, width)).astype(np.float32)
        self._deal_pages(rng, spare_slots)
        self._fill_rows(rng, width)

    def _deal_pages(self, rng, spare_slots):
        page = self.json["page_tokens"]
        needed = [max(0, -(-int(n) // page)) for n in self.lens]
        slots = max(needed) + spare_slots
        self.num_pages = sum(needed) + 3
        order = rng.permutation(self.num_pages).astype(np.int32)
        self.table = rng.choice(GARBAGE, (len(needed), slots)).astype(np.int32)
        at = 0
        for request, num in enumerate(needed):
            self.table[request, :num] = order[at:at + num]
            at += num

    def _fill_rows(self, rng, width):
        page = self.json["page_tokens"]
        self.kv = np.full((self.num_pages, page, width), np.nan, np.float32)
        for request, length in enumerate(self.lens):
            for token in range(max(0, int(length))):
                row = rng.standard_normal(width).astype(np.float32)
                self.kv[self.table[request, token // page], token % page] = row

    def lose_page(self, request, slot, number):
        """Puts a number outside the pool inside a request's length: its tokens are masked."""
        self.table[request, slot] = number

    def write(self, directory):
        with open(os.path.join(directory, "case.json"), "w", encoding="utf-8") as file:
            json.dump(self.json, file)
        arrays = dict(q=self.q, kv=self.kv, block_table=self.table, context_lens=self.lens,
                      query_starts=self.starts, kv_scale=self.kv_scale,
                      query_scale=self.query_scale)
        for name, array in arrays.items():
            np.save(os.path.join(directory, name + ".npy"), array)

    def visible(self, request, row):
        """(page, offset) of the keys that a request's row sees."""
        page, window = self.json["page_tokens"], self.json["window"]
        length = max(0, int(self.lens[request]))
        num_rows = int(self.starts[request + 1] - self.starts[request])
        end = length
        if self.json["causal"]:
            end = min(max(length - num_rows + row + 1, 0), length)
        begin = max(0, end - window) if window else 0
        found = [(int(self.table[request, t // page]), t % page) for t in range(begin, end)]
        return [(p, o) for p, o in found if 0 <= p < self.num_pages]

    def expected(self):
        """out [Q,H,D], lse [Q,H] and the size sum(p |v|) [Q,H,D] that errors scale with."""
        latent = self.json["latent_dim"]
        rows = storage.stored_rows(self.json["kv_format"], self.kv, latent, self.kv_scale[0])
        query = storage.stored_query(self.json["query_dtype"], self.q, self.query_scale)
        heads = self.json["heads"]
        out = np.zeros((len(self.q), heads, latent))
        size = np.zeros_like(out)
        lse = np.full((len(self.q), heads), -np.inf)
        for request in range(len(self.lens)):
            for at in range(self.starts[request], self.starts[request + 1]):
                keys = self.visible(request, at - self.starts[request])
                if keys:
                    seen = np.stack([rows[p, o] for p, o in keys])
                    out[at], lse[at], size[at] = self._attend(query[at], seen)
        return out, lse, size

    def _attend(self, query, keys):
        scores = query @ keys.T * self.json["softmax_scale"]
        most = scores.max(-1, keepdims=True)
        weights = np.exp(scores - most)
        total = weights.sum(-1, keepdims=True)
        values = keys[:, :self.json["latent_dim"]]
        lse = (most + np.log(total))[:, 0]
        return weights / total @ values, lse, weights / total @ np.abs(values)
