"""`mla generate` against the reference: greedy ids, alone and in one batch."""
import json
import signal
import subprocess
import tempfile

import program

REFERENCE = program.demo("generations.json")["generations"]
EOS = "<\uff5cend\u2581of\u2581sentence\uff5c>"  # in the reference's text, never in ours
for generation in REFERENCE:
    generation["text"] = generation["text"].removesuffix(EOS)
MARGIN = 0.1  # of log-probability: below it bf16 rows may choose otherwise


class Generate(program.ProgramTest):
    def generate(self, *options):
        return self.answer("generate", program.DEMO, "--json", *options)

    def check(self, answer, wanted):
        self.assertEqual(answer["prompt_ids"], wanted["prompt_ids"])
        self.assertEqual(answer["ids"], wanted["ids"])
        self.assertEqual(answer["text"], wanted["text"])
        self.assertEqual(answer["finish_reason"], {"eos": "stop"}.get(wanted["finish"],
                                                                    wanted["finish"]))

    def check_alone(self, *options):
        for wanted in REFERENCE:
            with self.subTest(wanted["name"]):
                self.check(self.generate("--prompt", wanted["prompt"], "--kv", "f32",
                                         "--max-tokens", 64, *options), wanted)

    def test_f32_ids_equal_the_reference_with_one_thread(self):
        self.check_alone("--threads", 1)

    def test_f32_ids_equal_the_reference_with_all_threads(self):
        self.check_alone()

    def test_f32_ids_equal_the_reference_in_one_batch(self):
        prompts = [word for wanted in REFERENCE for word in ("--prompt", wanted["prompt"])]
        answers = self.generate(*prompts, "--kv", "f32", "--max-tokens", 64)
        self.assertEqual(len(answers), len(REFERENCE))
        for answer, wanted in zip(answers, REFERENCE):
            with self.subTest(wanted["name"]):
                self.check(answer, wanted)

    def test_bf16_ids_equal_the_reference_up_to_a_small_margin(self):
        for wanted in REFERENCE:
            sure = next((i for i, m in enumerate(wanted["margins"]) if m < MARGIN),
                        len(wanted["ids"]))
            with self.subTest(wanted["name"], sure=sure):
                answer = self.generate("--prompt", wanted["prompt"], "--max-tokens", 64)
                self.assertEqual(answer["ids"][:sure], wanted["ids"][:sure])

    def test_json_has_its_keys_in_order(self):
        answer = self.generate("--prompt", "a", "--max-tokens", 2)
        self.assertEqual(list(answer), ["prompt_ids", "ids", "text", "finish_reason", "timings",
                                        "memory"])
        self.assertEqual(list(answer["timings"]), [
            "load_ms", "prepare_ms", "prefill_ms", "decode_ms", "prefill_tokens_per_s",
            "decode_tokens_per_s"])
        self.assertGreater(answer["memory"]["weights"]["now"], 7e6)

    def test_text_is_the_json_text(self):
        options = ("--prompt", REFERENCE[0]["prompt"], "--max-tokens", 8)
        text = self.succeed("generate", program.DEMO, *options).decode()
        self.assertEqual(text, self.generate(*options)["text"] + "\n")

    def test_several_answers_come_in_order_under_headers(self):
        prompts = [REFERENCE[-1]["prompt"], REFERENCE[0]["prompt"]]
        options = ["--kv", "f32", "--max-tokens", 64, "--prompt", prompts[0], "--prompt",
                   prompts[1]]
        text = self.succeed("generate", program.DEMO, *options).decode()
        self.assertEqual(text, f"--- prompt 1 of 2\n{REFERENCE[-1]['text']}\n"
                               f"--- prompt 2 of 2\n{REFERENCE[0]['text']}\n")

    def test_a_prompt_from_a_file_is_the_same_prompt(self):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(REFERENCE[0]["prompt"])
            file.flush()
            answer = self.generate("--prompt-file", file.name, "--max-tokens", 4, "--kv", "f32")
        self.assertEqual(answer["prompt_ids"], REFERENCE[0]["prompt_ids"])
        self.assertEqual(answer["ids"], REFERENCE[0]["ids"][:4])

    def test_sampling_depends_on_the_seed_and_nothing_else(self):
        def sample(seed, *options):
            return self.generate("--prompt", "The ", "--max-tokens", 12, "--temperature", 1.5,
                                 "--top-k", 200, "--top-p", 0.99, "--min-p", 0.001, "--seed", seed,
                                 *options)["ids"]
        self.assertEqual(sample(7), sample(7, "--threads", 1))
        self.assertGreater(len({tuple(sample(seed)) for seed in range(4)}), 1)

    def test_guesses_change_no_token(self):
        for sampling in ((), ("--temperature", 1, "--seed", 9)):
            asked = ("--prompt", "a b c a b c a b c a b", "--max-tokens", 60, *sampling)
            plain = self.generate(*asked)["ids"]
            for num in (1, 7):
                with self.subTest(num=num, sampling=sampling):
                    self.assertEqual(self.generate(*asked, "--draft-tokens", num)["ids"], plain)

    def test_temperature_alone_has_seed_0(self):
        options = ("--prompt", "The ", "--max-tokens", 8, "--temperature", 1)
        self.assertEqual(self.generate(*options)["ids"],
                         self.generate(*options, "--seed", 0)["ids"])

    def test_without_a_limit_it_goes_on_to_the_end_of_the_context(self):
        filler = "static int x;\n" * 2000
        ids = self.answer("tokenize", program.DEMO, "--bos", stdin=filler.encode())["ids"][:2040]
        text = self.succeed("tokenize", program.DEMO, "--decode", stdin=json.dumps(ids[1:]).encode())
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            answer = self.generate("--prompt-file", file.name)
        total = len(answer["prompt_ids"]) + len(answer["ids"])
        if answer["finish_reason"] == "length":
            self.assertEqual(total, 2048)
        else:
            self.assertLess(total, 2049)
            self.assertEqual(answer["ids"][-1], 1)

    def test_an_interrupt_ends_with_what_there_is(self):
        command = [program.PROGRAM, "generate", program.DEMO, "--prompt", REFERENCE[0]["prompt"],
                   "--kv", "f32"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            first = process.stdout.read(20)
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=120)
        text = (first + rest).decode()
        self.assertEqual((process.returncode, errors), (130, b""))
        self.assertEqual(text[-1], "\n")
        self.assertEqual(text[:20], REFERENCE[0]["text"][:20])
        self.assertLess(len(text), 4000)  # uninterrupted it has some 5000 characters


if __name__ == "__main__":
    program.main()
