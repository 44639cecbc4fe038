#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` under attack: malformed and smuggled requests, slow clients,
floods, requests of other sites. requests/ has the malformed ones, and the
answer to each. Environment variables as for test_serve_query.py.
"""
import os
import resource
import sys
import time
import unittest

sys.dont_write_bytecode = True
from server import Client, Server, folder, main  # noqa: E402

REQUESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requests")
TOKEN = "0123456789abcdef0123456789abcdef"


def malformed():
    """Yields name, bytes and allowed statuses of each."""
    with open(os.path.join(REQUESTS, "answers.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                continue
            name, statuses = line.split()
            with open(os.path.join(REQUESTS, name + ".request"), "rb") as data:
                yield name, data.read(), [int(s) for s in statuses.split("|")]


class Malformed(unittest.TestCase):
    def test_every_file_is_listed(self):
        listed = {name + ".request" for name, _, _ in malformed()}
        self.assertEqual(listed | {"answers.txt"}, set(os.listdir(REQUESTS)))

    def test_each_is_refused_and_closed(self):
        with Server(name="malformed") as server:
            host = f"Host: localhost:{server.port}".encode()
            for name, data, statuses in malformed():
                with self.subTest(name), server.client() as client:
                    client.send(data.replace(b"Host: localhost\r", host + b"\r"))
                    answer = client.answer()
                    self.assertIn(answer.status, statuses, answer.body)
                    self.assertEqual(answer.headers["connection"], "close")
                    self.assertIn("message", answer.json()["error"])
                    self.assertTrue(client.has_ended(), "answered once more")

    def test_each_is_refused_byte_by_byte(self):
        with Server(name="bytes") as server:
            host = f"Host: localhost:{server.port}".encode()
            for name, data, statuses in malformed():
                data = data.replace(b"Host: localhost\r", host + b"\r")
                if len(data) > 400:
                    continue
                with self.subTest(name), server.client() as client:
                    try:
                        for i in range(len(data)):
                            client.send(data[i:i + 1])
                    except (BrokenPipeError, ConnectionResetError):
                        pass  # it has answered before the end
                    answer = client.answer()
                    if answer is not None:
                        self.assertIn(answer.status, statuses, answer.body)


class Framing(unittest.TestCase):
    def test_5000_pipelined_requests_are_answered_in_order(self):
        with Server(name="pipeline") as server, server.client() as client:
            host = f"Host: 127.0.0.1:{server.port}\r\n\r\n"
            client.send("".join(
                f"GET /{'health' if i % 2 else i} HTTP/1.1\r\n{host}"
                for i in range(5000)))
            for i in range(5000):
                self.assertEqual(client.answer().status, 200 if i % 2 else 404)
            self.assertEqual(server.stats()["http"]["requests"], 5001)

    def test_a_pipeline_whose_answers_are_not_read_is_held_up(self):
        with Server("--write-ms", "300", name="unread") as server:
            with server.client() as client:
                text = (f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
                        "\r\n\r\n") * 1000
                with self.assertRaises((BrokenPipeError, ConnectionResetError)):
                    while True:  # until the server has had enough
                        client.send(text)
            server.wait(lambda stats: stats["http"]["connections"] == 1)
            self.assertGreater(server.stats()["http"]["timed_out"], 0)

    def test_half_closed_requests_are_answered(self):
        with Server(name="half") as server, server.client() as client:
            for _ in range(3):
                client.request("/health")
            client.socket.shutdown(1)
            for _ in range(3):
                self.assertEqual(client.answer().status, 200)
            self.assertTrue(client.has_ended())

    def test_requests_in_single_bytes(self):
        with Server(name="single") as server, server.client() as client:
            text = (f"\r\nPOST /query?format=csv HTTP/1.1\r\n"
                    f"Host: 127.0.0.1:{server.port}\r\n"
                    "Content-Type: text/plain; charset=utf-8\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n"
                    "7;x=y\r\nSELECT \r\n1\r\n7\r\n0\r\nHost: evil\r\n\r\n")
            for byte in text:
                client.send(byte)
            answer = client.answer()
            self.assertEqual((answer.status, answer.body), (200, b"7\n7\n"))
            self.assertEqual(client.ask("/health").status, 200)

    def test_a_client_is_asked_for_its_body(self):
        with Server(name="expect") as server, server.client() as client:
            client.send(f"POST /query HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
                        "\r\nContent-Type: text/plain\r\nExpect: 100-continue"
                        "\r\nContent-Length: 8\r\n\r\n")
            self.assertEqual(client.answer().status, 100)
            client.send("SELECT 7")
            self.assertEqual(client.answer().status, 200)

    def test_old_clients_get_a_body_up_to_the_close(self):
        with Server(name="old") as server, server.client() as client:
            client.send("GET /query?format=csv&sql=SELECT+7 HTTP/1.0\r\n\r\n")
            answer = client.answer()
            self.assertNotIn("transfer-encoding", answer.headers)
            self.assertEqual(answer.body, b"7\n7\n")


    def test_an_offer_of_another_protocol_is_ignored(self):
        with Server(name="upgrade") as server, server.client() as client:
            for headers in (
                    {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c",
                     "HTTP2_Settings": "AAMAAABkAAQAoAAAAAIAAAAA"},
                    {"Connection": "Upgrade", "Upgrade": "TLS/1.2"},
                    {"Connection": "Upgrade", "Upgrade": "websocket"}):
                answer = client.ask("/health", **headers)
                self.assertEqual(answer.status, 200, answer.body)
                answer = client.ask(
                    "/query?format=csv", method="POST", body=b"SELECT 7",
                    Content_Type="text/plain", **headers)
                self.assertEqual(answer.body, b"7\n7\n")

    def test_a_target_in_absolute_form_names_the_host(self):
        with Server("--host", "db.example", name="absolute") as server:
            own = f"127.0.0.1:{server.port}"
            with server.client() as client:
                for target in (f"http://{own}/health", f"HTTP://{own}/health",
                               f"https://{own}/health", "http://db.example"
                               "/health", f"http://localhost:{server.port}/"
                               "query?format=csv&sql=SELECT+7"):
                    self.assertEqual(client.ask(target).status, 200, target)
                # the Host is not looked at, as the target counts
                answer = client.ask(f"http://{own}/stats", host="evil.example")
                self.assertEqual(answer.status, 200)
                answer = client.ask(f"http://{own}?sql=1")  # the path is "/"
                self.assertEqual(answer.headers["content-type"],
                                 "text/html; charset=utf-8")
            for status, target in ((421, "http://evil.example/stats"),
                                   (421, f"http://127.0.0.2:{server.port}/"),
                                   (421, "http://evil.example"),
                                   (400, f"http://me@{own}/stats"),
                                   (400, f"ftp://{own}/stats"),
                                   (400, "http:///stats")):
                answer = server.ask(target)
                self.assertEqual(answer.status, status, (target, answer.body))
        self.assertIn(" GET /health 200 ", server.lines()[0])

    def test_a_body_that_nobody_reads_is_refused_at_its_head(self):
        with Server(name="unwanted") as server:
            for method, path in (("GET", "/health"), ("GET", "/"),
                                 ("HEAD", "/health"), ("GET", "/stats"),
                                 ("GET", "/tables"), ("POST", "/health"),
                                 ("GET", "/query?sql=SELECT+1"),
                                 ("PUT", "/query")):
                for framing in ("Content-Length: 1000000",
                                "Transfer-Encoding: chunked"):
                    with server.client() as client:
                        client.send(
                            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:"
                            f"{server.port}\r\n{framing}\r\n\r\n")
                        answer = client.answer(method)
                        self.assertIn(answer.status, (400, 405), path)
                        self.assertEqual(answer.headers["connection"], "close")
                        self.assertTrue(client.has_ended())
            answer = server.ask("/health", Content_Length="0")
            self.assertEqual(answer.status, 200)

    def test_clients_are_told_how_long_a_connection_lasts(self):
        with Server(name="told") as server, server.client() as client:
            answer = client.ask("/health")
            self.assertEqual(answer.headers["connection"], "keep-alive")
            # pools of Go and hyper wait 90 s, of .NET 120 s
            self.assertEqual(answer.headers["keep-alive"], "timeout=130")
            answer = client.ask("/health", Connection="close")
            self.assertEqual(answer.headers["connection"], "close")
            self.assertNotIn("keep-alive", answer.headers)
        for given, told in (("100", 1), ("1000", 1), ("1999", 1), ("2000", 2)):
            with Server("--idle-ms", given, name="told-ms") as server:
                with server.client() as client:
                    begun = time.monotonic()
                    self.assertEqual(client.ask("/health").headers["keep-alive"],
                                     f"timeout={told}")
                    self.assertTrue(client.has_ended())
                    # a request of the last moment would have been read
                    self.assertGreater(time.monotonic() - begun, told + 0.5)


class Slow(unittest.TestCase):
    def drip(self, server, clients):
        """Sends bytes of a head on each until the server has closed all."""
        clients, text = list(clients), "GET /health HTTP/1.1\r\nX: "
        sent = 0
        while clients:
            for client in list(clients):
                try:
                    client.send(text[sent] if sent < len(text) else "y")
                    client.socket.setblocking(False)
                    client.buffer += client.socket.recv(4096)
                    if b"\r\n\r\n" in client.buffer:
                        clients.remove(client)
                except BlockingIOError:
                    pass
                except (BrokenPipeError, ConnectionResetError):
                    clients.remove(client)
                client.socket.setblocking(True)
            sent += 1

    def test_500_slow_heads_end_while_others_are_served(self):
        with Server("--head-ms", "500", "--linger-ms", "100",
                    name="drip") as server:
            clients = [server.client() for _ in range(500)]
            self.drip(server, clients)
            self.assertEqual(server.ask("/health").status, 200)
            stats = server.wait(lambda s: s["http"]["connections"] == 1)
            self.assertGreaterEqual(stats["http"]["timed_out"], 500)
            for client in clients:
                client.socket.close()

    def test_a_slow_body_ends(self):
        with Server("--body-ms", "200", name="body") as server:
            with server.client() as client:
                client.send(
                    f"POST /query HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                    "Content-Type: text/plain\r\nContent-Length: 9\r\n\r\nSEL")
                self.assertEqual(client.answer().status, 408)
                self.assertTrue(client.has_ended())

    def test_silent_and_idle_connections_end(self):
        with Server("--head-ms", "200", "--idle-ms", "200",
                    name="idle") as server:
            with server.client() as silent, server.client() as idle:
                self.assertEqual(idle.ask("/health").status, 200)
                self.assertTrue(silent.has_ended())
                self.assertTrue(idle.has_ended())

    def test_a_connection_too_many_is_refused(self):
        with Server("--max-connections", "3", name="many") as server:
            clients = [server.client() for _ in range(3)]
            for client in clients:
                self.assertEqual(client.ask("/health").status, 200)
            with server.client() as client:  # makes no request
                answer = client.answer()
                self.assertEqual(answer.status, 503)
                self.assertEqual(answer.headers["retry-after"], "1")
                self.assertTrue(client.has_ended())
            clients.pop().socket.close()
            answer = None
            while answer is None or answer.status == 503:  # seen as closed
                answer = server.ask("/tables")
            self.assertEqual(answer.status, 200)
            for client in clients:
                client.socket.close()

    def test_the_state_is_answered_beyond_the_limit(self):
        with Server("--max-connections", "2", name="beyond") as server:
            clients = [server.client() for _ in range(2)]
            for client in clients:
                self.assertEqual(client.ask("/health").status, 200)
            silent = [server.client() for _ in range(3)]
            for path, status in (("/health", 200), ("/stats", 200), ("/", 200),
                                 ("/tables", 503),
                                 ("/query?sql=SELECT+1", 503)):
                answer = server.ask(path)
                self.assertEqual(answer.status, status, path)
                self.assertEqual(answer.headers["connection"], "close")
            self.assertEqual(answer.headers["retry-after"], "1")
            self.assertIn("too many connections", answer.message())
            for client in silent:
                self.assertEqual(client.answer().status, 503)
            for client in clients + silent:
                client.socket.close()


class Descriptors(unittest.TestCase):
    """Few connections, or no connection at all."""

    def test_the_limit_of_the_system_lowers_that_of_connections(self):
        limit = (resource.RLIMIT_NOFILE, (80, 80))
        with Server(name="few",
                    begin=lambda: resource.setrlimit(*limit)) as server:
            clients = [server.client()]
            while clients[-1].ask("/tables").status == 200:
                clients.append(server.client())
            most = len(clients) - 1
            self.assertEqual(server.ask("/health").status, 200)
            self.assertEqual(server.ask("/query?sql=SELECT+1").status, 503)
            answer = clients[0].ask("/query?format=csv&sql=SELECT+7+AS+a")
            self.assertEqual(answer.body, b"a\n7\n")
            for client in clients:
                client.socket.close()
        self.assertRegex(server.errors[0],
                         f"uvarrow: {most} connections and [1-8] queries at one "
                         "time, as 80 descriptors may be open")

    def test_too_few_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "the limit of 20 open files "
                                    "is too low: the server needs") as caught:
            Server(name="too-few", begin=lambda: resource.setrlimit(
                resource.RLIMIT_NOFILE, (20, 20)))
        self.assertEqual(caught.exception.code, 2)

    def test_out_of_descriptors_it_can_be_asked_and_ended(self):
        with Server(name="none") as server:
            self.assertEqual(server.ask("/tables").status, 200)
            held = server.client()
            while held.ask("/stats").json()["http"]["connections"] > 1:
                pass  # the one before is not closed
            process = server.process.pid
            own = {int(name) for name in os.listdir(f"/proc/{process}/fd")}
            before = resource.prlimit(process, resource.RLIMIT_NOFILE)
            least = next(fd for fd in range(len(own) + 1) if fd not in own)
            resource.prlimit(process, resource.RLIMIT_NOFILE,
                             (least, before[1]))
            waiting = [server.client() for _ in range(3)]
            for _ in range(3):
                self.assertEqual(server.ask("/health").status, 200)
            answer = server.ask("/query?sql=SELECT+1")
            self.assertEqual(answer.status, 503)
            self.assertEqual(answer.headers["retry-after"], "1")
            for client in waiting:
                self.assertEqual(client.answer().status, 503)
                client.socket.close()
            resource.prlimit(process, resource.RLIMIT_NOFILE, before)
            answer = None
            while answer is None or answer.status == 503:  # by a timer
                answer = server.ask("/query?format=csv&sql=SELECT+7+AS+a")
            self.assertEqual(answer.body, b"a\n7\n")
            resource.prlimit(process, resource.RLIMIT_NOFILE,
                             (least, before[1]))
            server.ask("/health")
            clients = [server.client() for _ in range(3)]
            server.terminate()
            self.assertEqual(server.stop(), 0)
            for client in [held, *clients]:
                client.socket.close()
        lines = [line for line in server.errors if "no connection" in line]
        self.assertEqual(len(lines), 2, server.errors)
        answers = server.lines()
        self.assertGreater(len(answers), 10)
        for line in answers:
            self.assertLess(float(line.split()[-3]), 1e6, line)


class Access(unittest.TestCase):
    def refused(self, server, status, path="/stats", **headers):
        answer = server.ask(path, **headers)
        self.assertEqual(answer.status, status, answer.body)
        self.assertNotIn("access-control-allow-origin", answer.headers)

    def test_hosts(self):
        with Server("--host", "db.example", "--host", "other.example:444",
                    name="hosts") as server:
            port = server.port
            for host in (f"127.0.0.1:{port}", f"localhost:{port}",
                         f"LOCALHOST:{port}", "db.example", "DB.example:99",
                         "other.example:444"):
                self.assertEqual(server.ask("/stats", host=host).status, 200,
                                 host)
            for host in ("127.0.0.1", "localhost:1", f"127.0.0.2:{port}",
                         "db.example.evil", "evil.example", "other.example",
                         "other.example:445", f"[::1]:{port}", "a:b:c",
                         f"localhost:{port}@evil", f"localhost:0{port}"):
                self.refused(server, 421, host=host)

    def test_hosts_of_both_families(self):
        path = os.path.join(folder(), f"hosts-token-{os.getpid()}")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN)
        try:
            server = Server("--token-file", path, listen="[::]:0",
                            name="families")
        except RuntimeError:
            self.skipTest("no IPv6")
        with server:
            port = server.port
            for host in (f"127.0.0.1:{port}", f"[::ffff:127.0.0.1]:{port}",
                         f"[::FFFF:7f00:1]:{port}", f"localhost:{port}"):
                self.assertEqual(server.ask("/health", host=host).status, 200,
                                 host)
            for host in (f"127.1:{port}", f"127.0.0.01:{port}", f"[]:{port}",
                         f"2130706433:{port}", f"[127.0.0.1]:{port}",
                         f"::ffff:127.0.0.1:{port}", f"[::1]:{port}", "[",
                         f"[::ffff:127.0.0.1:{port}", f"127.0.0.2:{port}",
                         f"[{'0' * 80}]:{port}", "]", f"[:{port}"):
                self.refused(server, 421, path="/health", host=host)
            with Client(port, address="::1") as client:
                for host in ("[::1]", "[0:0:0:0:0:0:0:1]", "localhost"):
                    self.assertEqual(client.ask(
                        "/health", host=f"{host}:{port}").status, 200, host)
        os.remove(path)

    def test_sites(self):
        with Server("--allow-origin", "https://app.example",
                    name="sites") as server:
            own = f"http://127.0.0.1:{server.port}"
            self.assertEqual(server.ask("/stats", Origin=own).status, 200)
            for origin in ("http://evil.example", "null", own + "0", "",
                           "https" + own[4:], own + ".evil",
                           "https://app.example.evil", "http://app.example"):
                self.refused(server, 403, Origin=origin)
                self.refused(server, 403, method="OPTIONS", Origin=origin)
            answer = server.ask("/stats", Origin="https://app.example")
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.headers["access-control-allow-origin"],
                             "https://app.example")
            answer = server.ask("/query", method="OPTIONS",
                                Origin="https://app.example")
            self.assertEqual(answer.status, 204)
            self.assertIn("authorization",
                          answer.headers["access-control-allow-headers"])

    def test_sites_are_compared_as_browsers_write_them(self):
        for allowed, origin in (
                ("HTTPS://App.Example", "https://app.example"),
                ("https://app.example:443", "https://app.example"),
                ("http://app.example:80/", "http://app.example"),
                ("http://[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000"),
                ("http://127.1:3000", "http://127.0.0.1:3000"),
                ("https://app.example", "https://App.Example"),
                ("null", "null")):
            with Server("--allow-origin", allowed, name="normal") as server:
                answer = server.ask("/stats", Origin=origin)
                self.assertEqual(answer.status, 200, allowed)
                self.assertEqual(answer.headers["access-control-allow-origin"],
                                 origin)
                for other in ("https://app.example.evil", "http://app.example:1",
                              "Null", "http://[::1]"):
                    self.refused(server, 403, Origin=other)

    def test_an_allowed_site_can_read_every_answer(self):
        path = os.path.join(folder(), f"cors-token-{os.getpid()}")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN)
        with Server("--allow-origin", "https://app.example", "--token-file",
                    path, "--body-ms", "100", name="cors") as server:
            begin = (f"POST /query HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
                     "\r\nOrigin: https://app.example\r\n")
            token = f"Authorization: Bearer {TOKEN}\r\n"
            plain = "Content-Type: text/plain\r\n"
            for status, request in (
                    (413, begin + token + "Content-Length: 9999999\r\n\r\n"),
                    (431, begin + f"X: {'x' * 20000}\r\n\r\n"),
                    (408, begin + token + plain + "Content-Length: 9\r\n\r\n"),
                    (401, begin + "\r\n"),
                    (400, begin + "a b: c\r\n\r\n"),
                    (417, begin + "Expect: x\r\n\r\n"),
                    (421, begin.replace("127.0.0.1", "evil") + "\r\n"),
                    (400, begin + token + plain + "Content-Length: 5\r\n\r\n"
                     "selct"),
                    (415, begin + token + "\r\n"),
                    (405, begin.replace("/query", "/stats") + token + "\r\n"),
                    (404, begin.replace("/query", "/x") + token + "\r\n"),
                    (200, begin + token + plain + "Content-Length: 8\r\n\r\n"
                     "SELECT 1")):
                with server.client() as client:
                    client.send(request)
                    answer = client.answer()
                self.assertEqual(answer.status, status, answer.body)
                self.assertEqual(answer.headers["access-control-allow-origin"],
                                 "https://app.example")
                exposed = answer.headers["access-control-expose-headers"]
                self.assertIn("X-Query-Id", exposed)
            # the mere beginning of an Origin is not one
            with server.client() as client:
                client.send(f"GET / HTTP/1.1\r\nX: {'x' * 16000}\r\n"
                            "Origin: https://app.example" + "x" * 1000)
                answer = client.answer()
            self.assertEqual(answer.status, 431)
            self.assertNotIn("access-control-allow-origin", answer.headers)
        os.remove(path)

    def test_images_and_links_of_other_sites(self):
        with Server(name="images") as server:
            for site in ("cross-site", "same-site"):
                self.refused(server, 403, Sec_Fetch_Site=site)
                self.refused(server, 403, path="/query?sql=SELECT+1",
                             Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")
            for site in ("same-origin", "none"):
                self.assertEqual(server.ask("/stats",
                                            Sec_Fetch_Site=site).status, 200)

    def test_a_token(self):
        path = os.path.join(folder(), f"token-{os.getpid()}")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN + "\nsecond line\n")
        with Server("--token-file", path, name="token") as server:
            for given in (None, "Bearer", "Bearer ", "Bearer wrong", TOKEN,
                          "Basic " + TOKEN, f"Bearer {TOKEN}x",
                          f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}{TOKEN}"):
                headers = {} if given is None else {"Authorization": given}
                for target in ("/stats", "/query?sql=SELECT+1", "/nowhere"):
                    answer = server.ask(target, **headers)
                    self.assertEqual(answer.status, 401, given)
                    self.assertEqual(answer.headers["www-authenticate"],
                                     "Bearer")
            self.assertEqual(server.ask("/health").status, 200)
            self.assertEqual(server.ask(
                "/stats", Authorization="Bearer " + TOKEN).status, 200)
        os.remove(path)

    def test_what_is_not_safe_is_warned_of(self):
        path = os.path.join(folder(), f"warn-token-{os.getpid()}")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN)
        for mode, listen, exposed, plain in (
                (0o600, "127.0.0.1:0", False, False),
                (0o640, "127.0.0.1:0", True, False),
                (0o602, "127.0.0.1:0", True, False),
                (0o600, "0.0.0.0:0", False, True)):
            os.chmod(path, mode)
            server = Server("--token-file", path, listen=listen, name="warn")
            self.assertEqual(server.stop(), 0)
            errors = "".join(server.errors)
            self.assertEqual("can read or change " + path in errors, exposed)
            self.assertEqual("has no TLS" in errors, plain)
        os.remove(path)

    def test_a_large_body_is_refused_before_it_comes(self):
        with Server(name="early") as server, server.client() as client:
            client.send(f"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1:"
                        f"{server.port}\r\nContent-Length: 1000000\r\n\r\n")
            self.assertEqual(client.answer().status, 404)
            self.assertTrue(client.has_ended())


if __name__ == "__main__":
    main()
