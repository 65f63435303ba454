"""How `mla serve` starts and ends."""
import signal
import socket
import time

import serving
from serving import chat, long_chat, request


class Shutdown(serving.ServeTest):
    @classmethod
    def setUpClass(cls):
        pass

    tearDownClass = setUpClass

    def start(self, *options):
        self.server = serving.Server("--max-requests", "1", *options)
        self.addCleanup(self.server.stop, signal.SIGKILL)
        return self.server

    def begin(self, body, head=True):
        client = self.server.connect()
        client.send(request("POST", "/v1/chat/completions", body))
        if head:
            self.assertEqual(client.head()[0], 200)
        return client

    def test_the_start_says_where_the_memory_goes_and_what_is_frozen(self):
        text = self.start("--max-context", "512", "--kv-bytes", "64M").start_text
        self.assertRegex(text, r"(?m)^  session +0 B +0    peak +\S+ \S+ +[1-9]")
        self.assertRegex(text, r"(?m)^frozen: 1 requests run together, of up to 512 tokens; \d+ pages of 64 tokens")
        self.assertRegex(text, r"listening on http://127\.0\.0\.1:\d+\n\Z")

    def test_the_ledger_tells_the_preparation_and_the_pages(self):
        ledger = self.start("--kv-bytes", "64M").ledger()
        points = ledger["preparation"]["points"]
        self.assertEqual((points[0][1], points[-1][1]), (0, 0))
        self.assertEqual(max(held for _, held in points), ledger["preparation"]["peak"])
        self.assertEqual(ledger["classes"]["session"]["now"], 0)
        self.assertGreater(ledger["preparation"]["peak"], 0)
        self.assertEqual([at for at, _ in points], sorted(at for at, _ in points))
        pages = ledger["pages"]
        self.assertEqual(pages["map"], [[0, pages["num"]]])
        self.assertEqual(pages["free"], pages["num"])
        _client = self.begin(long_chat(stream=True))

        def are_told_alike():
            pages = self.server.ledger()["pages"]
            self.assertEqual(sum(count for _, count in pages["map"]), pages["num"])
            return 0 < sum(count for owner, count in pages["map"] if owner > 1) == pages["used"]

        self.eventually(are_told_alike, True)

    def test_an_idle_server_ends_at_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.assertEqual(self.start().stop(number), 0)

    def test_what_runs_and_what_waits_ends_before_the_server(self):
        server = self.start()
        first = self.begin(chat(stream=True, tokens=600, ignore_eos=True))
        second = self.begin(chat(stream=True))
        third = self.begin(chat(), head=False)
        self.eventually(lambda: server.ledger()["requests"]["waiting"], 2)
        server.process.send_signal(signal.SIGTERM)
        self.eventually(lambda: server.ask("GET", "/health").status, 503)
        self.assertEqual(server.ask("GET", "/ready").status, 503)
        self.assertEqual(server.ledger()["phase"], "draining")
        refused = server.ask("POST", "/v1/chat/completions", chat())
        self.assertEqual(self.check_error(refused, 503)["code"], "shutting_down")
        self.assertEqual(refused.headers["connection"], "close")
        self.assertIn("retry-after", refused.headers)
        for client in (first, second):
            self.assertTrue(client.chunks().endswith(b"data: [DONE]\n\n"))
        self.assertEqual(third.reply().status, 200)
        self.assertEqual(server.process.wait(serving.DEADLINE), 0)

    def test_connections_without_a_request_do_not_hold_it_up(self):
        server = self.start()
        idle = server.connect()
        half = server.connect()
        half.send(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertTrue(idle.is_ended())
        self.assertTrue(half.is_ended())

    def test_after_the_timeout_what_runs_is_cancelled(self):
        server = self.start("--shutdown-timeout", "0.3")
        streams = [self.begin(long_chat(stream=True)) for _ in range(2)]
        plain = self.begin(long_chat(), head=False)
        server.process.send_signal(signal.SIGTERM)
        for stream in streams:
            events = stream.chunks()
            self.assertTrue(events.endswith(b"data: [DONE]\n\n"))
            self.assertIn(b'"finish_reason":"abort"', events)
        self.assertEqual(plain.reply().json()["choices"][0]["finish_reason"], "abort")
        self.assertEqual(server.process.wait(serving.DEADLINE), 0)

    def test_a_second_signal_ends_it_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start()
            client = self.begin(long_chat(stream=True))
            server.process.send_signal(signal.SIGTERM)
            self.eventually(lambda: server.ask("GET", "/health").status, 503)
            self.assertEqual(server.stop(number), 128 + number)
            self.assertNotIn(b"[DONE]", client.rest())

    def test_a_port_that_is_taken_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = serving.program.run("serve", serving.program.DEMO, "--port", port)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), rf"\Amla serve: cannot listen at 127\.0\.0\.1, port {port}: .*\n\Z")

    def test_wrong_options_are_named(self):
        for option, value in (("--kv-bytes", "12X"), ("--kv-bytes", "-1"), ("--port", "65536"),
                              ("--draft-tokens", "8"), ("--metrics-compat", "x"), ("--read-timeout", "0"),
                              ("--cors-origin", "a\r\nb")):
            done = serving.program.run("serve", serving.program.DEMO, option, value)
            self.assertEqual(done.returncode, 2, (option, value))
            self.assertRegex(done.stderr.decode(), rf"\Amla serve: {option} .*\n\Z")


if __name__ == "__main__":
    serving.main()
