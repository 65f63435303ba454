"""`mla serve` in a crowd, and where its machine misbehaves: live requests are answered all the
same, each as if alone, and nothing stays behind."""
import os
import resource
import subprocess
import tempfile
import time

import load
import serving

NUM_IDLE = 10_000
NUM_SLOW = 200


class Crowd(load.LoadTest):
    """Each test starts its own server."""

    num_questions = 12

    @classmethod
    def setUpClass(cls):
        cls.asked = load.questions(cls.num_questions, 9)

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.most_files = hard

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.server.stop(), 0)

    def start(self, *options, **more):
        self.server = serving.Server("--kv-bytes", "24M", "--max-requests", "8", *options, **more)
        self.addCleanup(self.server.process.kill)
        self.first = self.state(self.server)
        load.ask_alone(self.server, self.asked)
        return self.server

    def connect(self, num, **options):
        clients = []
        for _ in range(num):
            clients.append(self.server.connect(**options))
            self.addCleanup(clients[-1].close)
        return clients

    def check_life(self, num, seed, **more):
        begin = time.monotonic()
        load.Load(self.server, self.asked, num, 16, seed, **more).start().wait(120)
        return time.monotonic() - begin

    def test_ten_thousand_connections_that_say_nothing(self):
        self.assertGreater(self.most_files, NUM_IDLE + 200, "too few files: ulimit -n")
        server = self.start("--max-connections", NUM_IDLE + 200)
        alone = self.check_life(200, 1)
        before, rss = server.held(), load.rss_bytes(server)
        idle = self.connect(NUM_IDLE)
        self.eventually(lambda: load.metrics(server)["mla_http_connections_open"], NUM_IDLE + 1)
        among = self.check_life(200, 1, leaving=0.1)
        print(f"\n  200 requests: {alone:.1f} s, among {NUM_IDLE} idle connections {among:.1f} s; of each "
              f"{(server.held()['server'] - before['server']) / NUM_IDLE:.0f} bytes in the books, "
              f"{(load.rss_bytes(server) - rss) / NUM_IDLE:.0f} resident")
        for client in idle[::7]:
            client.send(serving.request("GET", "/health"))
        for client in idle[::7]:
            self.assertEqual(client.reply().status, 200)
        for number, client in enumerate(idle):
            client.reset() if number % 2 else client.close()

    def test_hundreds_that_do_not_read(self):
        server = self.start("--write-timeout", "1")
        slow = self.connect(NUM_SLOW, receive_bytes=2048)
        for number, client in enumerate(slow):
            client.send(serving.request("POST", "/v1/completions", {
                "prompt": f"slow {number}", "max_tokens": 200 if number % 12 else 1900, "n": 1 if number % 12 else 2,
                "ignore_eos": True, "stream": True, "logprobs": 20}))
        self.check_life(100, 2)
        self.eventually(lambda: (server.held()["running"], server.held()["waiting"]), (0, 0), 120)
        counted = load.metrics(server)
        print(f"\n  {NUM_SLOW} that do not read: {int(counted['mla_http_slow_readers_total'])} dropped, "
              f"the others' answers fit their sockets")
        for client in slow:
            client.close()

    def test_files_run_out_while_it_serves(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

        self.start("--max-connections", "1000", preexec_fn=few_files)
        streams = self.connect(8)
        for number, client in enumerate(streams):
            client.send(self.asked[number].request(f"s{number}", True))
            self.assertEqual(client.head()[0], 200)
        crowd = self.connect(100)
        for number, client in enumerate(streams):
            events = [event for event in client.chunks().decode().split("\n\n") if event.startswith("data: {")]
            pieces = [serving.json.loads(event[6:]) for event in events]
            self.assertEqual(load.answer_of(pieces, f"s{number}"), self.asked[number].answer)
        for client in crowd + streams:
            client.close()
        self.check_life(50, 3)

    def test_a_full_disk_for_the_log(self):
        self.start("--log-file", "/dev/full")
        self.check_life(150, 4, leaving=0.2, refused=0.1)

    def test_the_clock_jumps(self):
        """That of the day, which does not run backwards for who waits."""
        with tempfile.NamedTemporaryFile("w", suffix=".clock") as clock:
            clock.write("+0")
            clock.flush()
            library = subprocess.run(["faketime", "-f", "+0", "sh", "-c", "echo $LD_PRELOAD"], capture_output=True,
                                     text=True, check=True).stdout.strip()
            jumping = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": clock.name, "FAKETIME_NO_CACHE": "1",
                       "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            server = self.start("--read-timeout", "20", "--idle-timeout", "20", env={**os.environ, **jumping})
            idle, half = self.connect(2)
            half.send(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{")
            running = load.Load(server, self.asked, 200, 8, 5).start()
            told = []
            for jump in ("+10d", "-10d", "+3650d", "-1h", "+0"):
                clock.seek(0)
                clock.truncate()
                clock.write(jump)
                clock.flush()
                told.append(server.ask("GET", "/v1/models").headers["date"])
                time.sleep(0.3)
            running.wait(120)
            half.send(b'"prompt":"a"}')
            self.assertEqual(half.reply("POST").status, 200)
            idle.send(serving.request("GET", "/health"))
            self.assertEqual(idle.reply().status, 200)
            self.assertGreater(len(set(told)), 3, f"the clock did not jump: {told}")
            idle.close()
            half.close()


if __name__ == "__main__":
    serving.main()
