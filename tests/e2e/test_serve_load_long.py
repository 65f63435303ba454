"""`mla serve` under thousands of requests: nothing is lost, answered twice or kept, and what it
did meanwhile is printed."""
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time

import load
import serving

NUM_REQUESTS = 3000
NUM_CLIENTS = 32
NUM_VICTIMS = 24  # processes that are killed in the middle of 8 streams each
NUM_HEY = 1000
GROWTH_BYTES = 1 << 20  # of resident memory from the second third to the last


class Watch:
    """Resident memory by progress, and CPU by thread."""

    def __init__(self, server):
        self.server, self.begin = server, time.monotonic()
        self.rss = []
        self.before = self.cpu()
        self.step_seconds = load.metrics(server)["mla_engine_step_seconds_total"]

    def cpu(self):
        pid = self.server.process.pid
        tasks = sorted(map(int, os.listdir(f"/proc/{pid}/task")))
        return [load.cpu_seconds(pid, task) for task in tasks]

    def look(self, counts):
        done = counts["answered"] + counts["left"] + counts["refused"]
        self.rss.append((done, load.rss_bytes(self.server)))

    def third(self, number):
        last = self.rss[-1][0]
        return statistics.median(rss for done, rss in self.rss if number * last <= 3 * done <= (number + 1) * last)

    def report(self, requests):
        """The threads are, by their start: the loop, the engine's pool, the worker, the engine."""
        seconds = time.monotonic() - self.begin
        used = [after - before for before, after in zip(self.before, self.cpu())]
        edge = used[0] + used[-2]
        steps = load.metrics(self.server)["mla_engine_step_seconds_total"] - self.step_seconds
        print(f"  {requests} requests in {seconds:.1f} s: {requests / seconds:.0f} a second")
        print(f"  CPU: {sum(used) / seconds:.2f} of a core; loop and worker {edge / sum(used):.1%} of it, "
              f"{edge / steps:.1%} of the engine's steps")
        print("  resident, MiB, by thirds: " + ", ".join(f"{self.third(i) / (1 << 20):.2f}" for i in range(3)))


def print_gaps(name, gaps):
    gaps = sorted(gaps)
    median, p99 = gaps[len(gaps) // 2], gaps[len(gaps) * 99 // 100]
    print(f"  between pieces of a stream, {name}: median {median * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms, "
          f"ratio {p99 / median:.1f}")


class Heavy(load.LoadTest):
    def kill_some(self, running, watch):
        """Client processes come and are killed until the load is through; how many were."""
        rng, killed = random.Random(3), 0
        while running.is_running() and killed < NUM_VICTIMS:
            victim = load.stream_client(self.server.port, 8, 100)
            self.assertEqual(victim.stdout.readline(), "reading\n")
            for _ in range(rng.randrange(5)):
                time.sleep(0.02)
                watch.look(running.counts)
            victim.kill()
            victim.communicate()
            killed += 1
        return killed

    def test_1_thousands_that_stay_leave_and_are_killed(self):
        print()
        before = load.ended(load.metrics(self.server))
        watch = Watch(self.server)
        running = load.Load(self.server, self.asked, NUM_REQUESTS, NUM_CLIENTS, 1, leaving=0.2, refused=0.03).start()
        killed = self.kill_some(running, watch)
        while running.is_running():
            time.sleep(0.05)
            watch.look(running.counts)
        counts = running.wait(300)
        watch.report(NUM_REQUESTS)
        print(f"  {counts}, {killed} processes killed with 8 streams each")
        self.assertEqual(killed, NUM_VICTIMS)
        self.assertEqual(counts["answered"] + counts["left"] + counts["refused"], NUM_REQUESTS)
        self.eventually(lambda: self.state(self.server), self.first)
        after = load.ended(load.metrics(self.server))
        print(f"  ended: {after}")
        self.assertGreaterEqual(after["stop"] + after["length"] - before["stop"] - before["length"], counts["choices"])
        self.assertGreater(after["abort"], NUM_VICTIMS)
        self.assertEqual(after["error"], 0)
        self.assertLessEqual(watch.third(2), watch.third(1) + GROWTH_BYTES)

    def test_2_what_is_submitted_is_what_ends(self):
        before = load.ended(load.metrics(self.server))
        counts = load.Load(self.server, self.asked, 500, NUM_CLIENTS, 2).start().wait(300)
        self.assertEqual(self.check_counters(before, counts)["abort"], 0)

    def test_3_gaps_in_a_stream_alone_and_in_company(self):
        print()
        for streams in (1, 8):
            client = load.stream_client(self.server.port, streams, 6)
            gaps = client.communicate(timeout=300)[0].split("\n")[1]
            print_gaps(f"{streams} streams", json.loads(gaps))
        running = load.Load(self.server, self.asked, 400, 16, 3, leaving=0.1).start()
        client = load.stream_client(self.server.port, 1, 6)
        gaps = client.communicate(timeout=300)[0].split("\n")[1]
        running.wait(300)
        print_gaps("1 stream under load", json.loads(gaps))

    def test_4_a_load_generator_from_the_field(self):
        print()
        before = load.ended(load.metrics(self.server))
        question = next(at for at in self.asked if at.num_choices() == 1 and at.body["max_tokens"] == 16)
        with tempfile.NamedTemporaryFile("w") as body:
            json.dump({**question.body, "stream": True}, body)
            body.flush()
            done = subprocess.run(
                ["hey", "-n", str(NUM_HEY), "-c", "50", "-m", "POST", "-T", "application/json", "-D", body.name,
                 f"http://127.0.0.1:{self.server.port}{question.path}"],
                capture_output=True, text=True, timeout=300, check=True)
        print(re.sub(r"(?m)^", "  ", re.search(r"Summary:.*?\n\n", done.stdout, re.S).group(0)).rstrip())
        self.assertEqual(re.findall(r"\[(\d+)\]\t(\d+) responses", done.stdout), [("200", str(NUM_HEY))], done.stdout)
        self.assertNotIn("Error", done.stdout)
        self.check_counters(before, {"choices": NUM_HEY, "choices_left": 0})


class HeavyWithDrafts(load.LoadTest):
    options = (*load.LoadTest.options, "--draft-tokens", "4")

    def test_hundreds_that_stay_and_leave(self):
        before = load.ended(load.metrics(self.server))
        counts = load.Load(self.server, self.asked, 600, NUM_CLIENTS, 4, leaving=0.2).start().wait(300)
        self.check_counters(before, counts)


if __name__ == "__main__":
    serving.main()
