"""`mla bench`: its keys and that its numbers belong together. How fast is not tested here."""
import program

KEYS = ["name", "heads", "rows", "requests", "context", "kv_format", "us", "gflops", "gbps",
        "share"]
FORMATS = {"f32", "bf16", "fp8", "fp8_g128"}


class Bench(program.ProgramTest):
    def bench(self, *arguments):
        report = self.answer("bench", *arguments, "--rounds", 1, "--json")
        self.assertEqual(list(report), ["commit", "device", "limits", "rows"])
        fma = report["limits"]["fma_gflops"]
        self.assertGreater(fma, 0)
        self.assertGreater(report["limits"]["read_gbps"], 0)
        for row in report["rows"]:
            self.assertEqual(list(row)[:len(KEYS)], KEYS)
            self.assertGreater(row["us"], 0)
            self.assertAlmostEqual(row["share"], row["gflops"] / fma, delta=2e-3)
        return report["rows"]

    def test_attention_has_the_promised_rows(self):
        rows = self.bench("attention")
        for heads in (16, 128):
            found = {row["kv_format"] for row in rows if (row["heads"], row["rows"],
                     row["requests"], row["context"]) == (heads, 1, 1, 4096)}
            self.assertEqual(found, FORMATS)

    def test_attention_counts_its_work(self):
        for row in self.bench("attention", "--threads", 1):
            if row["rows"] == 1:
                flops = row["requests"] * row["heads"] * 4096 * (2 * 576 + 2 * 512)
                self.assertAlmostEqual(row["gflops"] * row["us"] * 1e3 / flops, 1, delta=1e-2)

    def test_a_plan_comes_back_from_its_line(self):
        short = "{} h16 d128+64 p16 {} q:bf16 o:bf16 b2 q{} r{} t5 n9 ctx70 causal x0.07{}"
        lines = [short.format("decode", "fp8_g128", 2, 1, ""),
                 short.format("verify", "bf16", 6, 3, " w20 i4")]
        options = [word for line in lines for word in ("--plan", line)]
        first = self.bench("attention", *options)
        self.assertEqual([row["name"] for row in first], ["decode", "verify"])
        self.assertEqual([row["rows"] for row in first], [1, 3])
        self.assertTrue(first[1]["plan"].endswith(" i4"))
        again = [word for row in first for word in ("--plan", row["plan"])]
        self.assertEqual([row["plan"] for row in self.bench("attention", *again)],
                         [row["plan"] for row in first])
        text = self.succeed("bench", "attention", "--rounds", 1, *again).decode()
        self.assertIn("\n  " + first[0]["plan"] + "\n", text)

    def test_a_line_that_is_no_plan_is_refused(self):
        self.refuse("bench", "attention", "--plan", "decode h16 d12x", status=2,
                    words=["d12x", "column 12"])
        self.refuse("bench", "model", "--plan", "decode", status=2, words=["lacks"])

    def test_options_of_another_device_are_refused(self):
        for option, word in (("--shape", "--shape"), ("--cache", "--cache")):
            self.refuse("bench", "attention", option, "x", status=2, words=[word, "cuda"])
        self.refuse("bench", "model", "--device", "cuda", status=2, words=["cuda"])
        self.refuse("bench", "attention", "--device", "tpu", status=2, words=["tpu"])
        self.refuse("bench", "attention", "--device", "cuda", "--isa", "c", status=2, words=["--isa"])
        self.refuse("bench", "attention", "--device", "cuda", "--rounds", 3, status=2,
                    words=["--rounds"])
        line = "cuda:sm90a decode h16 d128+64 p16 bf16 q:bf16 o:bf16 b2 q2 r1 t5 n9 ctx70 causal x0.07"
        self.refuse("bench", "attention", "--device", "cpu", "--plan", line, status=2,
                    words=["another device"])
        for option in ("--shape", "--cache"):
            self.refuse("bench", "attention", "--plan", line, option, "x", status=2,
                        words=[option, "--plan"])

    def test_model_has_prefill_and_decode_for_1_and_8(self):
        rows = self.bench("model", program.DEMO)
        self.assertEqual({(row["name"], row["requests"]) for row in rows},
                         {("prefill", 1), ("prefill", 8), ("decode", 1), ("decode", 8)})
        for row in rows:
            tokens = row["requests"] * row["rows"]
            self.assertAlmostEqual(row["tokens_per_s"] * row["us"] * 1e-6 / tokens, 1, delta=1e-2)

    def test_text_is_a_table(self):
        lines = self.succeed("bench", "model", program.DEMO, "--rounds", 1).decode().splitlines()
        self.assertEqual(len(lines), 4 + 4)
        self.assertIn("tokens/s", lines[3])


if __name__ == "__main__":
    program.main()
