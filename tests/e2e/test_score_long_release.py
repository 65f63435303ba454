"""`mla score` against the reference, over all windows of the held-out text."""
import math

import program
import score_file

SCORE = program.demo("score.json")


class ScoreAll(program.ProgramTest):
    def test_f32_nll_of_all_windows_is_the_reference(self):
        answer = score_file.answer(self, "--kv", "f32")
        self.assertEqual(answer["tokens"], SCORE["tokens"])
        score_file.check(self, answer["nll"], SCORE["nll"])
        self.assertAlmostEqual(answer["perplexity"],
                               math.exp(answer["nll"] / answer["tokens"]), places=9)


if __name__ == "__main__":
    program.main()
