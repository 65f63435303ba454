"""A client of its own process: reads streams, and says how far apart their pieces came.

usage: stream_client.py PORT STREAMS REQUESTS; prints JSON, the gaps in seconds. It is also what
tests kill: it says `reading` as soon as each of its streams has begun.
"""
import json
import sys
import threading
import time

import serving

TOKENS = 100


def read_stream(port, number, num_requests, gaps, begun):
    with serving.Client(port) as client:
        for at in range(num_requests):
            client.send(serving.request("POST", "/v1/completions", {
                "prompt": f"Stream {number} of {at}", "max_tokens": TOKENS, "ignore_eos": True, "stream": True,
                "seed": at}))
            client.until(b"data: ")
            begun.release()
            times = []
            while b"[DONE]" not in client.data:
                client.data = client.data[-16:]
                client.more()
                times.append(time.monotonic())
            client.until(b"\r\n0\r\n\r\n")
            gaps.extend(b - a for a, b in zip(times, times[1:]))


def main():
    port, num_streams, num_requests = map(int, sys.argv[1:])
    gaps, begun = [], threading.Semaphore(0)
    threads = [threading.Thread(target=read_stream, args=(port, i, num_requests, gaps, begun))
               for i in range(num_streams)]
    for thread in threads:
        thread.start()
    for _ in threads:
        begun.acquire()
    print("reading", flush=True)
    for thread in threads:
        thread.join()
    print(json.dumps(gaps))


if __name__ == "__main__":
    main()
