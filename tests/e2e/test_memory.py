"""`mla memory`: the ledger in each phase of a model's life."""
import program

PHASES = ["loaded", "preparing", "prepared", "frozen", "served", "closed"]
CLASSES = ["context", "session", "plan", "binding", "graph", "comm", "weights", "kv",
           "activations", "drafter", "server", "other"]


class Memory(program.ProgramTest):
    def phases(self, *options):
        phases = program.memory_phases(self, *options)
        self.assertEqual(list(phases), PHASES)
        return phases

    def test_every_class_is_there_with_its_numbers(self):
        for name, classes in self.phases().items():
            self.assertEqual(set(classes), set(CLASSES), name)
            for cell in classes.values():
                self.assertEqual(list(cell), ["now", "peak", "by_space"])
                self.assertEqual(set(cell["by_space"]), {"host", "pinned", "device"})
                self.assertEqual(sum(cell["by_space"].values()), cell["now"])
                self.assertGreaterEqual(cell["peak"], cell["now"])

    def test_nothing_but_the_server_grows_after_the_freeze(self):
        phases = self.phases()
        for name in set(CLASSES) - {"server", "other"}:
            self.assertEqual(phases["frozen"][name], phases["served"][name], name)

    def test_closing_gives_everything_back(self):
        phases = self.phases()
        self.assertGreater(phases["served"]["weights"]["now"], 15e6)
        self.assertGreater(phases["served"]["kv"]["now"], 1e6)
        for name in set(CLASSES) - {"context", "other"}:
            self.assertEqual(phases["closed"][name]["now"], 0, name)

    def test_kv_is_what_the_format_and_the_requests_say(self):
        rows = {"f32": 576 * 4, "bf16": 576 * 2, "fp8": 576, "fp8_g128": 656}
        for kv_format, row in rows.items():
            kv = self.phases("--kv", kv_format, "--requests", 2)["served"]["kv"]["now"]
            least = 4 * 2 * 2048 * row  # layers, requests, tokens
            self.assertGreaterEqual(kv, least)
            self.assertLess(kv, least * 1.1)

    def test_the_estimate_is_what_preparing_takes(self):
        for kv_format in ("f32", "fp8_g128"):
            text = self.succeed("memory", program.DEMO, "--kv", kv_format).decode()
            lines = text[text.index("estimated"):].splitlines()[1:]
            self.assertEqual([line.split()[-1] for line in lines], ["equal"] * 3, text)
            self.assertTrue(all(int(line.split()[-2]) > 0 for line in lines), text)

    def test_text_shows_every_phase(self):
        text = self.succeed("memory", program.DEMO).decode()
        at = [text.index("\n" + name + "\n") if name != "loaded" else 0 for name in PHASES]
        self.assertEqual(at, sorted(at))
        self.assertIn("session", text)
        self.assertIn("other", text)


if __name__ == "__main__":
    program.main()
