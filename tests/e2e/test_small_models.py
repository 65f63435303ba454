"""Small random models of every shape that the family allows, against a forward pass in NumPy
that shares nothing with the program: greedy ids, and the likelihood of a text."""
import os
import tempfile

import numpy as np

import program
import small_checkpoint
import small_forward

TEXT = bytes(32 + (i * 7 + i * i // 3) % 95 for i in range(700))
ALLOWED = 2e-5       # of a nat a token, between f32 and double precision
CLOSE = 1e-3         # of log-probability: two tokens as likely as this may change places
NEW_TOKENS = 24
YARN = dict(type="yarn", factor=40, original_max_position_embeddings=64, beta_fast=32,
            beta_slow=1)
MOE = small_checkpoint.EXPERTS
GROUPS = dict(MOE, n_group=4, topk_group=2)
V2 = dict(GROUPS, scoring_func="softmax", topk_method="group_limited_greedy")
# What each model changes. Its number is the seed of its weights.
MODELS = {
    "plain": {},
    "no_query_rank": dict(q_lora_rank=None),
    "biases": dict(attention_bias=True),
    "biases_without_query_rank": dict(attention_bias=True, q_lora_rank=None),
    "tied": dict(tie_word_embeddings=True),
    "latent_eps": dict(latent_norm_eps=0.05),
    "halves_rope": dict(rope_interleave=False, qk_rope_head_dim=32),
    "yarn_both": dict(rope_scaling=dict(YARN, mscale=0.707, mscale_all_dim=0.707)),
    "yarn_ones": dict(rope_scaling=dict(YARN, mscale=1.0, mscale_all_dim=1.0)),
    "yarn_unequal": dict(rope_scaling=dict(YARN, mscale=0.707, mscale_all_dim=1.0)),
    "yarn_silent": dict(rope_scaling=YARN, rope_interleave=False),
    "yarn_new_keys": dict(rope_theta=None, rope_parameters=dict(
        YARN, rope_type="yarn", rope_theta=5e4, mscale=1.0, mscale_all_dim=0.5)),
    "yarn_ramp_past_the_last_pair": dict(rope_theta=100.0, rope_scaling=dict(
        YARN, original_max_position_embeddings=4096)),
    "yarn_ramp_past_the_last_dimension": dict(rope_theta=10.0, rope_scaling=dict(
        YARN, beta_fast=200, original_max_position_embeddings=4096)),
    "yarn_step": dict(rope_scaling=dict(YARN, original_max_position_embeddings=4)),
    "yarn_ramp_before_the_first_pair": dict(rope_scaling=dict(
        YARN, original_max_position_embeddings=1)),
    "one_head": dict(num_attention_heads=1),
    "three_heads": dict(num_attention_heads=3, hidden_size=51, intermediate_size=77),
    "wide_heads": dict(num_attention_heads=20, q_lora_rank=76, kv_lora_rank=512,
                       qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256),
    "latent_256": dict(kv_lora_rank=256, qk_rope_head_dim=32),
    "latent_1024": dict(kv_lora_rank=1024, qk_rope_head_dim=64, num_attention_heads=2),
    "one_wide": dict(qk_nope_head_dim=1, v_head_dim=1, num_attention_heads=5),
    "experts": MOE,
    "groups": GROUPS,
    "one_group_kept": dict(GROUPS, topk_group=1, num_experts_per_tok=2),
    "groups_of_one": dict(MOE, n_group=8, topk_group=4),
    "not_normed": dict(GROUPS, norm_topk_prob=False),
    "one_expert": dict(MOE, num_experts_per_tok=1),
    "all_experts": dict(MOE, num_experts_per_tok=8, first_k_dense_replace=0),
    "two_shared": dict(MOE, n_shared_experts=2, first_k_dense_replace=0),
    "none_shared": dict(MOE, n_shared_experts=0),
    "every_second_layer": dict(MOE, num_hidden_layers=5, moe_layer_freq=2,
                               first_k_dense_replace=0),
    "every_second_after_one": dict(MOE, num_hidden_layers=4, moe_layer_freq=2),
    "sigmoid_greedy": dict(MOE, topk_method="greedy"),
    "softmax_greedy": dict(MOE, scoring_func="softmax", topk_method="greedy"),
    "softmax_groups": dict(V2, norm_topk_prob=False),
    "softmax_normed": V2,
    "softmax_one": dict(V2, num_experts_per_tok=1),
}


class SmallModels(program.ProgramTest):
    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.model = room.name

    def path(self, name):
        return os.path.join(self.model, name)

    def make(self, number, changes, num_shards=1):
        self.config = {**small_checkpoint.BASE, **changes}
        self.tensors = small_checkpoint.random_tensors(self.config, number)
        small_checkpoint.write(self.model, self.config, self.tensors, num_shards)

    def reference(self, tokens):
        return small_forward.log_probabilities(self.config, self.tensors, np.array(tokens))

    def check_score(self, window, num):
        """The text in windows; each alone, too, so that no two errors cancel out."""
        for begin in range(0, num, window):
            part = TEXT[begin:min(begin + window, num)]
            with open(self.path("text"), "wb") as file:
                file.write(part)
            answer = self.answer("score", self.model, self.path("text"), "--window", window,
                                 "--kv", "f32", "--json")
            self.assertEqual(answer["tokens"], len(part))
            rows = self.reference([small_checkpoint.BOS, *part])[:-1]
            wanted = -rows[np.arange(len(part)), list(part)].sum()
            self.assertLessEqual(abs(answer["nll"] - wanted), ALLOWED * len(part))

    def check_generate(self, num_prompt):
        """Each id is the reference's likeliest after all those before it."""
        answer = self.answer("generate", self.model, "--prompt", TEXT[:num_prompt].decode(),
                             "--max-tokens", NEW_TOKENS, "--kv", "f32", "--json")
        prompt = [small_checkpoint.BOS, *TEXT[:num_prompt]]
        self.assertEqual(answer["prompt_ids"], prompt)
        self.assertEqual(len(answer["ids"]), NEW_TOKENS)
        rows = self.reference(prompt + answer["ids"][:-1])[num_prompt:]
        for row, found in zip(rows, answer["ids"]):
            self.assertLessEqual(row.max() - row[found], CLOSE)
            first, second = np.sort(row)[-2:][::-1]
            if first - second > CLOSE:
                self.assertEqual(found, row.argmax())

    def test_every_model_agrees_with_the_reference(self):
        for number, (name, changes) in enumerate(MODELS.items()):
            with self.subTest(name):
                self.make(number, changes)
                self.check_score(300, 590)
                self.check_generate(245)  # from one cell of 256 positions into the next

    def test_prompts_around_a_cell_of_256_positions(self):
        self.make(100, dict(GROUPS, rope_scaling=dict(YARN, mscale=0.707, mscale_all_dim=1.0)))
        for num_prompt in (1, 254, 255, 256, 511, 512, 600):
            with self.subTest(num_prompt):
                self.check_generate(num_prompt)
        self.check_score(700, 700)

    def test_shards_are_one_model(self):
        self.make(101, GROUPS, num_shards=3)
        self.check_score(300, 300)

    def test_layers_that_predict_further_tokens_are_left_alone(self):
        self.make(102, MOE)
        more = {**self.config, "num_hidden_layers": 3}
        extra = {**small_checkpoint.random_tensors(more, 103), **self.tensors,
                 "model.layers.2.eh_proj.weight": np.ones((48, 96), np.float32)}
        small_checkpoint.write(self.model, {**self.config, "num_nextn_predict_layers": 1}, extra)
        self.check_score(300, 300)
        small_checkpoint.write(self.model, self.config, extra)
        self.refuse("score", self.model, self.path("text"), words=["model.layers.2."])

    def test_what_would_change_the_numbers_is_refused_by_name(self):
        refused = [
            dict(model_type="deepseek_v2"), dict(hidden_act="gelu"), dict(scoring_func="tanh"),
            dict(topk_method="noaux"), dict(rope_scaling=dict(YARN, type="longrope")),
            dict(rope_scaling=dict(YARN, attention_factor=1.2)),
            dict(quantization_config=dict(quant_method="fp8")), dict(q_lora_rank=0),
            dict(num_experts_per_tok=9), dict(n_group=3), dict(topk_group=2),
            dict(qk_rope_head_dim=15), dict(kv_lora_rank=72), dict(qk_rope_head_dim=24),
        ]
        for changes in refused:
            with self.subTest(changes):
                self.make(104, dict(MOE, **changes))
                name = next(iter(changes))
                words = {"kv_lora_rank": "latent_dim", "qk_rope_head_dim": "rope",
                         "rope_scaling": "rope"}
                self.refuse("generate", self.model, "--prompt", "a", "--max-tokens", 1,
                            words=[words.get(name, name)])


if __name__ == "__main__":
    program.main()
