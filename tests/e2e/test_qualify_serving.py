"""`mla qualify serving`: the demo model passes it, also with one prompt more than fits; and a
server that does one thing wrong does not, each by the check that is meant for it."""
import concurrent.futures
import contextlib
import json
import os
import tempfile
import threading

import program
import standin_server

SMALL = ["--prompts", "4", "--prompt-tokens", "192", "--answers", "2", "--answer-tokens", "48"]
HEADER = ["commit", "compiler", "command", "machine", "passed", "load", "budget", "checks",
          "ratios", "measured", "ledger", "not_shown"]


class OfTheDemo(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "receipt.json")
        cls.done = program.run("qualify", "serving", program.DEMO, *SMALL, "--out", cls.path)
        with open(cls.path, encoding="utf-8") as file:
            cls.receipt = json.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_all_checks_pass(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        self.assertEqual(self.done.stderr, b"")
        self.assertEqual(list(self.receipt), HEADER)
        self.assertIs(self.receipt["passed"], True)
        self.assertEqual(len(self.receipt["checks"]), 13)
        for check in self.receipt["checks"]:
            self.assertIs(check["passed"], True, check)
        self.assertIn(b"13 checks passed", self.done.stdout.splitlines()[-1])

    def test_the_budget_is_for_this_load_exactly(self):
        budget = self.receipt["budget"]
        self.assertEqual(budget["pages_a_prompt"], 4)  # 192 + 48 - 1 tokens
        self.assertEqual(budget["pages_an_answer"], 3)  # 128 + 48 - 1 at most
        self.assertEqual(budget["pages"], 4 * 4 + 2 * 3)
        self.assertEqual(budget["bytes"], budget["pages"] * 64 * 4 * 2 * (512 + 64))
        self.assertEqual(budget["prompts_that_fit"], 5)

    def test_the_ledger_is_that_of_before_and_was_in_use(self):
        ledger = self.receipt["ledger"]
        for name, books in ledger["before"]["classes"].items():
            if name != "other":
                self.assertEqual(ledger["after"]["classes"][name]["now"], books["now"], name)
            if name not in ("other", "server"):
                self.assertEqual(ledger["during"]["classes"][name], books, name)
        self.assertEqual(ledger["before"]["pages"]["used"], 0)
        self.assertGreater(ledger["during"]["pages"]["used"], 0)
        self.assertEqual(ledger["after"]["pages"]["used"], 0)
        self.assertGreaterEqual(ledger["samples"], 4)

    def test_what_was_not_measured_is_no_number_and_is_said(self):
        ratios = self.receipt["ratios"]
        self.assertIsNone(ratios["decode_of_8_over_1"])  # eight have no pages here
        self.assertTrue(any("eight decode" in line for line in self.receipt["not_shown"]))
        self.assertGreaterEqual(ratios["inter_token_p99_over_median"], 1)
        self.assertEqual(self.receipt["measured"]["first_token_mixed"]["num"], 2 + 2)
        self.assertIsNone(self.receipt["measured"]["decode_of_8"])
        self.assertEqual(list(self.receipt["measured"])[-1], "beyond_s")
        self.assertEqual(list(ratios)[-1], "inter_token_median_mixed_over_alone")

    def test_it_says_what_made_it(self):
        self.assertIn("--prompt-tokens 192", self.receipt["command"])
        self.assertGreater(self.receipt["machine"]["allowed_cpus"], 0)
        self.assertEqual(os.listdir(self.folder.name), ["receipt.json"])

    def test_speculation_changes_no_answer(self):
        self.succeed("qualify", "serving", program.DEMO, *SMALL, "--draft-tokens", "3", "--json")

    def test_a_wrong_command_line_is_refused(self):
        self.refuse("qualify", "serving", status=2, words=["MODEL"])
        self.refuse("qualify", "serving", program.DEMO, "--prompts", "0", status=2, words=["0"])
        self.refuse("qualify", "serving", program.DEMO, "--prompt-tokens", "2040", words=[2048])
        self.refuse("qualify", "serving", program.DEMO, "--url", "ftp://x", words=["ftp://x"])

    def test_a_server_that_does_not_start_is_an_error(self):
        done = program.run("qualify", "serving", program.DEMO, *SMALL, "--kv-bytes", "1K")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"did not listen", done.stderr)


@contextlib.contextmanager
def standing_in(wrong):
    server = standin_server.make(wrong)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def receipt_of(wrong):
    """The receipt and the finished process, of a server that does this wrong."""
    with standing_in(wrong) as url, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "receipt.json")
        done = program.run("qualify", "serving", program.DEMO, *SMALL, "--url", url,
                           "--timeout", "20", "--out", path)
        with open(path, encoding="utf-8") as file:
            return json.load(file), done


WRONGS = (None, "leaks_a_page", "grows_a_class", "grows_a_class_for_a_moment", "allocates",
          "keeps_memory", "restarts", "errs_in_a_stream", "loses_an_answer", "changes_an_answer",
          "changes_a_long_answer", "ends_early", "admits_too_many", "reads_a_prompt_twice",
          "refuses_without_numbers", "accepts_everything", "dies")


class OfAServerThatIsWrong(program.ProgramTest):
    @classmethod
    def setUpClass(cls):  # they mostly sleep
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            cls.receipts = dict(zip(WRONGS, pool.map(receipt_of, WRONGS)))

    def expect(self, wrong, *words):
        receipt, done = self.receipts[wrong]
        failed = [check for check in receipt["checks"] if not check["passed"]]
        self.assertEqual(done.returncode, 1 if failed else 0, done.stderr)
        self.assertIs(receipt["passed"], not failed)
        self.assertEqual(len(failed), len(words), failed)
        for word, check in zip(words, failed):
            self.assertIn(word, check["name"], failed)

    def test_nothing_wrong_passes(self):
        self.expect(None)

    def test_a_page_that_is_not_given_back_is_seen(self):
        self.expect("leaks_a_page", "pages are back")

    def test_a_class_that_grows_is_seen(self):
        self.expect("grows_a_class", "nothing but")

    def test_a_class_that_grows_for_a_moment_is_seen(self):
        self.expect("grows_a_class_for_a_moment", "nothing but")

    def test_an_allocation_is_seen(self):
        self.expect("allocates", "nothing but")

    def test_memory_that_the_server_keeps_is_seen(self):
        self.expect("keeps_memory", "`server` is back")

    def test_a_restart_is_seen(self):
        self.expect("restarts", "nothing but")

    def test_an_error_in_a_stream_is_seen(self):
        self.expect("errs_in_a_stream", "mixed load are complete", "given alone", "counted once")

    def test_a_lost_answer_is_seen(self):
        self.expect("loses_an_answer", "nothing is lost", "answers of the mixed load",
                    "counted once")

    def test_an_answer_that_the_load_changes_is_seen(self):
        self.expect("changes_an_answer", "given alone")

    def test_a_long_answer_that_one_more_changes_is_seen(self):
        self.expect("changes_a_long_answer", "answers of the mixed load")

    def test_a_usage_that_is_not_as_asked_is_seen(self):
        self.expect("ends_early", "mixed load are complete", "given alone")

    def test_more_at_once_than_fits_is_seen(self):
        self.expect("admits_too_many", "more than fits waits")

    def test_a_preempted_request_is_seen(self):
        self.expect("reads_a_prompt_twice", "counted once")

    def test_a_refusal_without_numbers_is_seen(self):
        self.expect("refuses_without_numbers", "never fit")

    def test_an_accepted_request_that_never_fits_is_seen(self):
        self.expect("accepts_everything", "more than fits waits", "never fit")

    def test_a_server_that_is_gone_is_seen_and_the_receipt_is_there(self):
        self.expect("dies", "answers to the end")
        self.assertIsNone(self.receipts["dies"][0]["ledger"]["after"])


if __name__ == "__main__":
    program.main()
