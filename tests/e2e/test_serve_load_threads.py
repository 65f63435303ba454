"""`mla serve` under load, also under the sanitizers: every answer is the one it gives alone."""
import load
import serving


class Load(load.LoadTest):
    num_questions, most_texts = 16, 6

    def test_who_stays_is_answered_once_and_as_if_alone(self):
        before = load.ended(load.metrics(self.server))
        counts = load.Load(self.server, self.asked, 60, 16, 1).start().wait(300)
        self.assertEqual(counts["answered"], 60)
        self.assertEqual(self.check_counters(before, counts)["abort"], 0)

    def test_who_leaves_takes_nothing_with_it(self):
        before = load.ended(load.metrics(self.server))
        counts = load.Load(self.server, self.asked, 60, 16, 2, leaving=0.4, refused=0.1).start().wait(300)
        self.assertEqual(counts["answered"] + counts["left"] + counts["refused"], 60)
        self.assertGreater(self.check_counters(before, counts)["abort"], 0)


class LoadWithDrafts(Load):
    options = (*load.LoadTest.options, "--draft-tokens", "4")


if __name__ == "__main__":
    serving.main()
