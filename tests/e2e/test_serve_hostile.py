"""What is asked of `mla serve` to hurt it."""
import subprocess
import unittest

import program
from serving import DEADLINE, ServeTest, main

BODY = 15_000_000


class HostileBodies(ServeTest):
    options = ("--max-requests", "2")

    def test_a_prompt_of_too_many_bytes_is_refused_before_it_is_encoded(self):
        for path, body in (
            ("/v1/completions", {"prompt": "a" * BODY}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * BODY}]}),
            ("/tokenize", {"prompt": "a" * BODY}),
        ):
            error = self.check_error(self.server.ask("POST", path, body), 400)
            self.assertEqual(error["code"], "context_length_exceeded")
            self.assertIn(f"the {BODY} bytes of the prompt are at least", error["message"])
        peak = self.server.ledger()["classes"]["server"]["peak"]
        self.assertLess(peak, 5 * BODY)  # its tokens would take twenty times as much and more
        self.eventually(self.server.held, self.before)


class HostileFiles(unittest.TestCase):
    def ended(self, *options):
        command = [program.PROGRAM, "serve", program.DEMO, "--port", "0", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)

    def test_a_key_file_without_an_end_is_refused(self):
        ended = self.ended("--api-key-file", "/dev/zero")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("/dev/zero: the key in line 1 is longer than", ended.stderr)


if __name__ == "__main__":
    main()
