"""A running `mla serve`, and clients of it down to the bytes of a socket."""
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import program

DEADLINE = 60  # for what should happen at once, on a machine that does much else


class Server:
    """`mla serve` on the demo model, at a port that the kernel chose."""

    def __init__(self, *options, log=None, **popen):
        self.log = log or tempfile.TemporaryFile()
        self.has_log = not log
        command = [program.PROGRAM, "serve", program.DEMO, "--port", "0", *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, **popen)
        self.start_text = ""
        for line in self.process.stdout:
            self.start_text += line.decode()
            found = re.match(r"listening on http://127\.0\.0\.1:(\d+)\n\Z", line.decode())
            if found:
                self.port = int(found.group(1))
                return
        raise AssertionError(f"serve ended with {self.process.wait()}: {self.log_text()}")

    def __del__(self):
        if self.has_log:
            self.log.close()

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode()

    def connect(self, **options):
        return Client(self.port, **options)

    def ask(self, method, path, body=None, headers=()):
        with self.connect() as client:
            client.send(request(method, path, body, headers))
            return client.reply(method)

    def ledger(self):
        return self.ask("GET", "/ledger").json()

    def held(self):
        """What a request may not leave behind."""
        ledger = self.ledger()
        pages = ledger["pages"]
        return {
            "server": ledger["classes"]["server"]["now"], "used": pages["used"], "reserved": pages["reserved"],
            "running": ledger["requests"]["running"], "waiting": ledger["requests"]["waiting"],
        }

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.stdout.close()


def request(method, path, body=None, headers=(), version="1.1"):
    """The bytes of a request. body: JSON, or bytes."""
    lines = [f"{method} {path} HTTP/{version}", "Host: x", *headers]
    data = b""
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines.append(f"Content-Length: {len(data)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The data of each server-sent event."""
        return re.findall(r"^data: (.*)$", self.body.decode(), re.M)


class Client:
    def __init__(self, port, timeout=DEADLINE, receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def reset(self):
        """Leaves with a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def more(self):
        got = self.socket.recv(65536)
        self.data += got
        return bool(got)

    def until(self, mark):
        while mark not in self.data:
            if not self.more():
                raise AssertionError(f"the connection ended after {self.data!r}")
        end = self.data.index(mark) + len(mark)
        taken, self.data = self.data[:end], self.data[end:]
        return taken

    def take(self, num):
        while len(self.data) < num:
            if not self.more():
                raise AssertionError(f"the connection ended after {self.data!r}")
        taken, self.data = self.data[:num], self.data[num:]
        return taken

    def rest(self):
        try:
            while self.more():
                pass
        except ConnectionResetError:
            pass
        return self.data

    def head(self):
        lines = self.until(b"\r\n\r\n").decode().split("\r\n")
        status = int(re.match(r"HTTP/1\.1 (\d{3}) [A-Z]", lines[0]).group(1))
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        return status, {name.lower(): value for name, value in headers.items()}

    def chunks(self):
        body = b""
        while True:
            size = int(self.until(b"\r\n"), 16)
            body += self.take(size)
            if self.take(2) != b"\r\n":
                raise AssertionError("a chunk does not end with CR LF")
            if size == 0:
                return body

    def reply(self, method="GET"):
        status, headers = self.head()
        while status == 100:
            status, headers = self.head()
        if method == "HEAD" or status == 204:
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = self.chunks()
        elif "content-length" in headers:
            body = self.take(int(headers["content-length"]))
        else:
            body = self.rest()
        return Reply(status, headers, body)

    def __del__(self):
        self.close()

    def close(self):
        self.socket.close()

    def is_ended(self):
        """Waits for the server's close; a reset is one, too."""
        try:
            return not self.socket.recv(65536)
        except ConnectionResetError:
            return True

    def is_silent(self, seconds):
        return not self.data and not select.select([self.socket], [], [], seconds)[0]


def chat(stream=False, tokens=8, text="Hello!", **more):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": stream,
            "temperature": 0, **more}


def long_chat(stream=False, **more):
    """Takes seconds."""
    return chat(stream, tokens=1900, ignore_eos=True, **more)


class ServeTest(unittest.TestCase):
    """A test case with one server for all its tests."""

    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)
        cls.before = cls.server.held()

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"serve ended with {status}: {cls.server.log_text()}")

    def eventually(self, says, wanted, seconds=DEADLINE):
        end = time.monotonic() + seconds
        got = says()
        while got != wanted and time.monotonic() < end:
            time.sleep(0.02)
            got = says()
        self.assertEqual(got, wanted)

    def check_error(self, reply, status, kind=None):
        self.assertEqual(reply.status, status, reply.body)
        self.assertEqual(reply.headers["content-type"], "application/json")
        error = reply.json()["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertTrue(error["message"])
        if kind:
            self.assertEqual(error["type"], kind)
        return error


main = program.main
