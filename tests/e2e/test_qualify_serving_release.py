"""`mla qualify serving` with eight prompts at once and its rates, and on a model of random weights
with more context than the demo has."""
import os
import subprocess
import sys
import tempfile

import program

RATES = ("decode_of_8_over_1", "server_cpu_over_step_of_1", "server_cpu_over_step_of_8")


class QualifyServing(program.ProgramTest):
    def test_eight_prompts_pass_and_rates_are_numbers_where_they_were_measured(self):
        receipt = self.answer("qualify", "serving", program.DEMO, "--prompt-tokens", "192",
                              "--answer-tokens", "48", "--json")
        self.assertIs(receipt["passed"], True, receipt["checks"])
        self.assertEqual(receipt["budget"]["prompts_that_fit"], 10)
        self.assertEqual(receipt["measured"]["first_token_mixed"]["num"], 3 + 4)
        is_shown = not any("eight decode" in line for line in receipt["not_shown"])
        for name in RATES:
            self.assertEqual(receipt["ratios"][name] is not None, is_shown, name)

    def test_random_weights_pass_beyond_the_context_of_the_demo(self):
        with tempfile.TemporaryDirectory() as model:
            tool = os.path.join(program.SOURCE, "tools", "random-model")
            subprocess.run([sys.executable, tool, model, "--context", "4096"], check=True)
            self.succeed("qualify", "serving", model, "--prompts", "1", "--prompt-tokens", "2304",
                         "--answers", "1", "--answer-tokens", "32", "--json")


if __name__ == "__main__":
    program.main()
