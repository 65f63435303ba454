"""`mla serve` where something runs out: files, connections, places, memory, the log's disk."""
import os
import resource
import time

import serving
from serving import chat, long_chat, request

# 10,000 are for a machine that lets both ends have the files: MLA_IDLE_CONNECTIONS=10000.
IDLE_CONNECTIONS = int(os.environ.get("MLA_IDLE_CONNECTIONS", "1000"))


def cpu_seconds(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def num_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


class Limits(serving.ServeTest):
    @classmethod
    def setUpClass(cls):
        pass

    tearDownClass = setUpClass

    def start(self, *options, **more):
        self.server = serving.Server("--kv-bytes", "64M", *options, **more)
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0))
        return self.server

    def connect(self, num):
        clients = []
        for _ in range(num):
            clients.append(self.server.connect())
            self.addCleanup(clients[-1].close)
        return clients

    def test_without_files_it_neither_spins_nor_forgets_to_listen(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))

        server = self.start("--max-connections", "1000", preexec_fn=few_files)
        before = server.held()
        clients = self.connect(70)
        self.eventually(lambda: num_files(server), 48)
        begin = cpu_seconds(server)
        time.sleep(1)
        self.assertLess(cpu_seconds(server) - begin, 0.3)
        for client in clients:
            client.socket.close()
        self.assertEqual(server.ask("GET", "/health").status, 200)
        self.eventually(server.held, before)

    def test_many_idle_connections_cost_little_and_leave_nothing(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        server = self.start("--max-connections", IDLE_CONNECTIONS + 10)
        files, before = num_files(server), server.held()
        clients = self.connect(IDLE_CONNECTIONS)
        self.eventually(lambda: num_files(server), files + IDLE_CONNECTIONS)
        self.assertEqual(server.ask("POST", "/v1/chat/completions", chat()).status, 200)
        held = server.held()["server"] - before["server"]
        self.assertLess(held / IDLE_CONNECTIONS, 2048)
        begin = cpu_seconds(server)
        time.sleep(0.5)
        self.assertLess(cpu_seconds(server) - begin, 0.25)
        for client in clients:
            client.socket.close()
        self.eventually(server.held, before)
        self.eventually(lambda: num_files(server), files)

    def test_one_connection_too_many_is_told_so(self):
        server = self.start("--max-connections", "4")
        clients = self.connect(5)
        clients[4].send(request("GET", "/health"))
        self.check_error(clients[4].reply(), 503)
        self.assertTrue(clients[4].is_ended())
        clients[0].send(request("GET", "/health"))
        self.assertEqual(clients[0].reply().status, 200)
        clients[0].socket.close()
        self.eventually(lambda: server.ask("GET", "/health").status, 200)
        far = self.connect(100)
        self.assertTrue(far[-1].is_ended())

    def test_one_request_too_many_is_told_to_come_later(self):
        server = self.start("--max-requests", "1", "--max-waiting", "2")
        for client in self.connect(3):
            client.send(request("POST", "/v1/chat/completions", long_chat(stream=True)))
            self.assertEqual(client.head()[0], 200)
        self.eventually(lambda: server.ledger()["requests"]["waiting"], 2)
        reply = server.ask("POST", "/v1/chat/completions", chat())
        self.assertEqual(self.check_error(reply, 429)["code"], "queue_full")
        self.assertEqual(reply.headers["retry-after"], "1")

    def test_a_body_beyond_the_memory_for_all_is_told_to_come_later(self):
        server = self.start("--server-bytes", "2M", "--max-connections", "64")
        reply = server.ask("POST", "/tokenize", b"x" * (3 << 20))
        self.check_error(reply, 503)
        self.assertEqual(server.ask("POST", "/v1/chat/completions", chat()).status, 200)

    def test_bodies_that_fit_alone_and_not_together_are_told_to_come_later(self):
        server = self.start("--server-bytes", "8M", "--max-connections", "64", "--max-body", "3M")
        size = 3 << 20
        clients = self.connect(8)
        for client in clients:
            client.send(request("POST", "/tokenize", headers=[f"Content-Length: {size}"]))
        most = 0
        for client in clients:
            try:
                client.send(b"x" * (size - 1))
            except OSError:
                pass
            most = max(most, server.ledger()["classes"]["server"]["peak"])
        self.assertLess(most, 9 << 20)
        refused = [client for client in clients if not client.is_silent(0.2)]
        self.assertGreater(len(refused), 4)
        for client in refused:
            self.check_error(client.reply(), 503)

    def test_a_log_on_a_full_disk_loses_lines_only(self):
        server = self.start("--log-file", "/dev/full")
        for _ in range(20):
            self.assertEqual(server.ask("POST", "/v1/chat/completions", chat()).status, 200)
        self.assertEqual(server.log_text(), "")

    def test_a_log_that_nobody_reads_holds_nothing_up(self):
        ends = os.pipe()
        self.addCleanup(os.close, ends[0])
        server = self.start(log=open(ends[1], "wb", closefd=False))
        self.addCleanup(os.close, ends[1])
        with server.connect() as client:
            for _ in range(60):
                client.send(request("GET", "/" + "a" * 180) * 20)
                for _ in range(20):
                    self.assertEqual(client.reply().status, 404)

    def test_the_log_may_not_grow_larger_than_a_file_may_be(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        server = self.start(preexec_fn=small_files)
        for _ in range(40):
            self.assertEqual(server.ask("GET", "/health").status, 200)
        self.assertLessEqual(len(server.log_text()), 1000)

    def test_an_idle_connection_is_closed_after_a_while(self):
        server = self.start("--idle-timeout", "0.5")
        first, second = self.connect(2)
        second.send(request("GET", "/health"))
        self.assertEqual(second.reply().status, 200)
        self.assertTrue(first.is_ended())
        self.assertTrue(second.is_ended())
        self.assertEqual(server.ask("GET", "/health").status, 200)

    def test_a_log_that_cannot_be_opened_is_refused(self):
        done = serving.program.run("serve", serving.program.DEMO, "--log-file", "/nowhere/log")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/log", done.stderr.decode())


if __name__ == "__main__":
    serving.main()
