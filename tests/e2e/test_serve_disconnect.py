"""Clients that leave `mla serve`, in every phase and in every way: what they asked for is given
up, and nothing of it stays."""
import os
import signal
import subprocess
import sys
import time

import serving
from serving import chat, long_chat, request


def ways():
    """How a client leaves."""
    def close(client):
        client.socket.close()

    def half_close(client):
        client.socket.shutdown(serving.socket.SHUT_WR)

    def reset(client):
        client.reset()

    return {"close": close, "half-close": half_close, "reset": reset}


class Disconnect(serving.ServeTest):
    options = ("--max-requests", "1", "--no-prefix-cache", "--kv", "f32")

    def tearDown(self):
        self.eventually(self.server.held, self.before)

    def running(self):
        ledger = self.server.ledger()
        return ledger["requests"]["running"], ledger["requests"]["waiting"]

    def begin(self, body):
        client = self.server.connect()
        client.send(request("POST", "/v1/chat/completions", body))
        return client

    def check_gone(self, client, began):
        self.eventually(self.running, (0, 0))
        self.assertLess(time.monotonic() - began, 3)
        client.socket.close()

    def test_a_client_that_leaves_while_its_answer_is_written(self):
        for stream in (False, True):
            for name, leave in ways().items():
                with self.subTest(stream=stream, way=name):
                    client = self.begin(long_chat(stream))
                    self.eventually(self.running, (1, 0))
                    leave(client)
                    self.check_gone(client, time.monotonic())

    def test_a_client_that_leaves_with_a_second_request_sent_ahead(self):
        for stream in (False, True):
            for name, leave in ways().items():
                with self.subTest(stream=stream, way=name):
                    client = self.begin(long_chat(stream))
                    self.eventually(self.running, (1, 0))
                    client.send(request("GET", "/health") * 3)
                    time.sleep(0.05)
                    leave(client)
                    self.check_gone(client, time.monotonic())

    def test_a_client_that_leaves_the_engines_queue(self):
        first = self.begin(long_chat(stream=True))
        self.eventually(self.running, (1, 0))
        for stream in (False, True):
            for name, leave in ways().items():
                with self.subTest(stream=stream, way=name):
                    second = self.begin(long_chat(stream))
                    self.eventually(self.running, (1, 1))
                    leave(second)
                    self.eventually(self.running, (1, 0))
                    second.socket.close()
        first.socket.close()

    def test_a_client_that_leaves_at_any_moment(self):
        text = "The quick brown fox jumps over the lazy dog. " * 180
        for stream in (False, True):
            for step in range(24):
                client = self.begin(long_chat(stream, text=text) | {"max_tokens": 20})
                time.sleep(step * 0.004)
                list(ways().values())[step % 3](client)
                client.socket.close()

    def test_a_client_that_leaves_the_workers_queue(self):
        body = {"prompt": "word " * 200000}
        clients = []
        for _ in range(6):
            client = self.server.connect()
            client.send(request("POST", "/tokenize", body))
            clients.append(client)
        for name, leave in ways().items():
            client = self.begin(long_chat())
            leave(client)
            clients.append(client)
        for client in clients:
            client.socket.close()

    def test_a_client_that_leaves_in_the_middle_of_its_request(self):
        whole = request("POST", "/v1/chat/completions", chat())
        for cut in (1, 20, len(whole) - 1):
            for leave in ways().values():
                client = self.server.connect()
                client.send(whole[:cut])
                leave(client)
                client.socket.close()

    def test_a_client_that_is_killed(self):
        script = ("import socket, sys, time; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
                  "s.sendall(sys.stdin.buffer.read()); print('sent', flush=True); time.sleep(60)")
        for stream in (False, True):
            with self.subTest(stream=stream):
                client = subprocess.Popen([sys.executable, "-c", script, str(self.server.port)],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                client.stdin.write(request("POST", "/v1/chat/completions", long_chat(stream)))
                client.stdin.close()
                client.stdout.readline()
                self.eventually(self.running, (1, 0))
                client.send_signal(signal.SIGKILL)
                client.wait()
                client.stdout.close()
                self.eventually(self.running, (0, 0))

    def test_the_server_does_not_spin_on_a_client_that_sent_ahead(self):
        def cpu():
            with open(f"/proc/{self.server.process.pid}/task/{self.server.process.pid}/stat", encoding="utf-8") as file:
                fields = file.read().rsplit(") ", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        # Nothing may happen to the connection for a while: a plain reply, far away.
        first = self.begin(long_chat(stream=False))
        self.eventually(self.running, (1, 0))
        first.send(request("GET", "/health") * 1000)
        begin = cpu()
        time.sleep(0.5)
        self.assertLess(cpu() - begin, 0.25)
        first.reset()

    def test_what_was_sent_ahead_is_answered_after_the_reply(self):
        for stream in (False, True):
            with self.subTest(stream=stream):
                client = self.begin(chat(stream, tokens=100, ignore_eos=True))
                time.sleep(0.05)
                client.send(request("GET", "/health") + request("POST", "/v1/chat/completions", chat()))
                self.assertEqual(client.reply().status, 200)
                self.assertEqual(client.reply().body, b'{"status":"ok"}')
                self.assertIn("choices", client.reply().json())
                client.socket.close()

    def test_a_client_that_sends_without_end_holds_no_memory(self):
        client = self.begin(long_chat())
        self.eventually(self.running, (1, 0))
        client.socket.setblocking(False)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += client.socket.send(b"x" * 65536)
        except BlockingIOError:
            pass
        self.assertLess(self.server.held()["server"] - self.before["server"], 1 << 20)
        began = time.monotonic()
        client.socket.close()
        self.check_gone(client, began)

    def test_a_client_that_sent_too_much_ahead_has_its_reply_and_an_end(self):
        client = self.begin(chat(stream=True, tokens=200, ignore_eos=True))
        client.send(request("GET", "/" + "a" * 200) * 1000)
        self.assertTrue(client.reply().body.endswith(b"data: [DONE]\n\n"))
        self.assertTrue(client.is_ended())


class Waiting(serving.ServeTest):
    options = ("--max-requests", "1", "--comment-interval", "0.1", "--no-prefix-cache")

    def test_a_stream_that_waits_has_its_head_and_comments(self):
        with self.server.connect() as first, self.server.connect() as second:
            first.send(request("POST", "/v1/chat/completions", long_chat(stream=True)))
            first.head()
            second.send(request("POST", "/v1/chat/completions", chat(stream=True)))
            self.assertEqual(second.head()[0], 200)
            second.until(b"3\r\n:\n\n\r\n")
            second.until(b"3\r\n:\n\n\r\n")
            first.socket.close()
            self.assertIn(b"[DONE]", second.chunks())
        self.eventually(self.server.held, self.before)

    def test_a_plain_reply_that_waits_has_none(self):
        with self.server.connect() as first, self.server.connect() as second:
            first.send(request("POST", "/v1/chat/completions", long_chat(stream=True)))
            first.head()
            second.send(request("POST", "/v1/chat/completions", chat()))
            self.assertTrue(second.is_silent(0.4))
            first.socket.close()
            self.assertEqual(second.reply().status, 200)


class SlowReader(serving.ServeTest):
    options = ("--write-timeout", "1", "--no-prefix-cache", "--max-requests", "4")

    def test_a_client_that_does_not_read_is_dropped(self):
        client = self.server.connect(receive_bytes=2048)
        # Every token with its alternatives: some megabytes.
        body = long_chat(stream=True, logprobs=True, top_logprobs=20, n=3)
        client.send(request("POST", "/v1/chat/completions", body))
        self.eventually(lambda: self.server.ledger()["requests"]["running"] > 0, True)
        self.eventually(lambda: self.server.held()["running"], 0)
        self.eventually(self.server.held, self.before)
        self.assertIn(" 499 ", self.server.log_text())
        client.socket.close()

    def test_a_reply_that_is_not_fetched_is_dropped(self):
        client = self.server.connect(receive_bytes=2048)
        client.send(request("GET", "/metrics") * 2000)
        self.eventually(lambda: self.server.held()["server"] > self.before["server"], True)
        self.eventually(self.server.held, self.before)
        client.socket.close()


if __name__ == "__main__":
    serving.main()
