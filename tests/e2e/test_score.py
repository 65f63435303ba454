"""`mla score` against the reference, over the first four windows."""
import os
import subprocess

import program
import score_file

SCORE = program.demo("score.json")
NUM_WINDOWS = 4


def read_terminal(file):
    """All that was written to a terminal whose other end is closed: then reading fails."""
    text = b""
    try:
        while True:
            text += os.read(file, 1 << 16)
    except OSError:
        os.close(file)
        return text.decode()


class Score(program.ProgramTest):
    def test_f32_nll_of_the_first_windows_is_the_reference(self):
        answer = score_file.answer(self, "--kv", "f32", "--max-windows", NUM_WINDOWS)
        self.assertEqual(answer["tokens"], NUM_WINDOWS * 1023)
        score_file.check(self, answer["nll"], sum(SCORE["window_nll"][:NUM_WINDOWS]))

    def test_json_has_its_keys(self):
        answer = score_file.answer(self, "--max-windows", 1, "--window", 64)
        self.assertEqual(list(answer)[:3], ["tokens", "nll", "perplexity"])
        self.assertEqual(answer["tokens"], 64)

    def test_bits_do_not_depend_on_threads(self):
        options = ("--kv", "fp8_g128", "--max-windows", 1, "--window", 300)
        self.assertEqual(score_file.answer(self, *options, "--threads", 1)["nll"],
                         score_file.answer(self, *options)["nll"])

    def test_text_has_the_same_numbers(self):
        path = os.path.join(program.DATA, "score.txt")
        text = self.succeed("score", program.DEMO, path, "--max-windows", 1, "--window", 9)
        self.assertRegex(text.decode(), r"\Atokens +9\nnll +[\d.]+\nperplexity +[\d.]+\n\Z")

    def test_a_terminal_gets_bars_that_go_away(self):
        path = os.path.join(program.DATA, "score.txt")
        ours, theirs = os.openpty()
        command = [program.PROGRAM, "score", program.DEMO, path, "--max-windows", "2", "--window",
                   "9"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
            os.close(theirs)
            text = process.stdout.read().decode()
        drawn = read_terminal(ours)
        self.assertTrue(text.startswith("tokens "))
        for bar in ("preparing  [################################] 1/1",
                    "scoring    [................................] 0/2",
                    "scoring    [################................] 1/2"):
            self.assertIn("\r" + bar + "\x1b[K", drawn)
        self.assertTrue(drawn.endswith("\r\x1b[K"))

    def test_what_cannot_be_scored_is_refused(self):
        path = os.path.join(program.DATA, "score.txt")
        self.refuse("score", program.DEMO, path, "--window", 2048, words=[2049, 2048])
        self.refuse("score", program.DEMO, path, "--window", 0, status=2, words=["--window"])
        self.refuse("score", program.DEMO, "/nowhere", words=["/nowhere"])
        self.refuse("score", program.DEMO, "-", stdin=b"", words=["no tokens"])
        self.refuse("score", program.DEMO, "-", stdin=b"\xc3(", words=["UTF-8"])


if __name__ == "__main__":
    program.main()
