"""`mla serve` that is told to end, or stopped for a while, with fifty requests under way."""
import signal
import time

import load
import serving

NUM = 50


class Under(serving.ServeTest):
    @classmethod
    def setUpClass(cls):
        cls.asked = load.questions(12, 5)

    @classmethod
    def tearDownClass(cls):
        pass

    def begin(self, *options, tokens=None):
        """A server, and clients whose requests it has: running, waiting or being prepared."""
        server = serving.Server("--kv-bytes", "24M", "--max-requests", "8", *options)
        self.addCleanup(server.stop, signal.SIGKILL)
        load.ask_alone(server, self.asked)
        more = {"max_tokens": tokens, "min_tokens": tokens, "stop": None, "n": 1} if tokens else {}
        clients = []
        for number in range(NUM):
            clients.append((number, server.connect()))
            self.addCleanup(clients[-1][1].close)
            question = self.asked[number % len(self.asked)]
            clients[-1][1].send(question.request(f"r{number}", number % 2 == 0, **more))
        with server.connect() as last:  # what came before it has been read
            last.send(serving.request("GET", "/health"))
            self.assertEqual(last.reply().status, 200)
        return server, clients

    def check_answers(self, clients):
        for number, client in clients:
            got = load.read_answer(client, f"r{number}", number % 2 == 0)
            self.assertEqual(got, self.asked[number % len(self.asked)].answer)

    def test_all_that_was_accepted_is_answered_and_what_is_new_refused(self):
        server, clients = self.begin()
        server.process.send_signal(signal.SIGSTOP)  # so that it finds these together
        server.process.send_signal(signal.SIGTERM)
        late = server.connect()
        self.addCleanup(late.close)
        late.send(serving.request("POST", "/v1/chat/completions", serving.chat()))
        server.process.send_signal(signal.SIGCONT)
        reply = late.reply("POST")
        self.assertIn(reply.status, (200, 503))  # it may have come before the signal
        self.check_answers(clients)
        self.assertEqual(server.process.wait(serving.DEADLINE), 0)
        self.assertTrue(all(client.is_ended() for _, client in clients))

    def test_what_comes_later_is_told_to_go(self):
        server, clients = self.begin(tokens=60)
        server.process.send_signal(signal.SIGTERM)
        self.eventually(lambda: server.ask("GET", "/ready").status, 503)
        for _ in range(20):
            refused = server.ask("POST", "/v1/chat/completions", serving.chat())
            self.assertEqual(self.check_error(refused, 503)["code"], "shutting_down")
        for number, client in clients:
            self.assertEqual(load.read_answer(client, f"r{number}", number % 2 == 0)["new"], 60)
        self.assertEqual(server.process.wait(serving.DEADLINE), 0)

    def test_a_second_signal_ends_it_at_once(self):
        server, clients = self.begin(tokens=1000)
        server.process.send_signal(signal.SIGTERM)
        self.eventually(lambda: server.ask("GET", "/ready").status, 503)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(serving.DEADLINE), 128 + signal.SIGTERM)
        self.assertTrue(any(b"[DONE]" not in self.rest(client) for _, client in clients))

    @staticmethod
    def rest(client):
        try:
            return client.rest()
        except ConnectionResetError:
            return client.data

    def test_a_server_that_was_stopped_goes_on(self):
        server, clients = self.begin("--write-timeout", "1", "--comment-interval", "0.2", "--read-timeout", "1")
        half = server.connect()
        self.addCleanup(half.close)
        data = serving.request("POST", "/v1/chat/completions", serving.chat())
        half.send(data[:-5])
        server.process.send_signal(signal.SIGSTOP)
        half.send(data[-5:])
        late = server.connect()
        self.addCleanup(late.close)
        late.send(serving.request("POST", "/v1/chat/completions", serving.chat()))
        time.sleep(2.5)  # longer than the times it gives to clients
        server.process.send_signal(signal.SIGCONT)
        self.check_answers(clients)
        for client in (half, late):
            self.assertEqual(client.reply("POST").status, 200)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    serving.main()
