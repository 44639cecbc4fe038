#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI description of `uvarrow serve`, against what it answers.
Environment variables as for test_serve_query.py.
"""
import json
import os
import re
import sys
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import FOREVER, Server, main  # noqa: E402

TYPES = {"string": str, "boolean": bool, "integer": int, "array": list,
         "object": dict, "number": (int, float), "null": type(None)}
KNOWN = {"type", "properties", "required", "additionalProperties", "items",
         "enum", "minimum", "maxItems", "minLength", "pattern", "description",
         "format", "$ref"}
VALUES = {"sql": "SELECT 1 AS a", "format": "json", "parameters": "[]",
          "timeout": "1000", "table": "num%"}


class Openapi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(name="openapi")
        cls.answer = cls.server.ask("/openapi.json")
        cls.api = cls.answer.json()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.errors

    def resolve(self, value):
        while "$ref" in value:
            found = self.api
            for part in value["$ref"].split("/")[1:]:
                found = found[part]
            value = found
        return value

    def check(self, value, schema, where):
        """A value has the schema, of which each keyword is understood."""
        schema = self.resolve(schema)
        self.assertLessEqual(set(schema), KNOWN, where)
        types = schema["type"]
        types = types if isinstance(types, list) else [types]
        self.assertTrue(any(
            isinstance(value, TYPES[name]) and
            (name == "boolean" or not isinstance(value, bool))
            for name in types), (where, value, types))
        if "enum" in schema:
            self.assertIn(value, schema["enum"], where)
        if isinstance(value, str):
            self.assertGreaterEqual(len(value), schema.get("minLength", 0),
                                    where)
            self.assertRegex(value, schema.get("pattern", "^"), where)
        if "minimum" in schema:
            self.assertGreaterEqual(value, schema["minimum"], where)
        if isinstance(value, list):
            for item in value:
                self.check(item, schema["items"], where + "[]")
        if isinstance(value, dict):
            self.assertLessEqual(set(schema.get("required", ())), set(value),
                                 where)
            known = schema.get("properties", {})
            if schema.get("additionalProperties", True) is False:
                self.assertLessEqual(set(value), set(known), where)
            for name in set(value) & set(known):
                self.check(value[name], known[name], f"{where}.{name}")

    def check_answer(self, answer, operation, where):
        """Its status and type are described, and so is its JSON."""
        responses = operation["responses"]
        status = str(answer.status)
        self.assertIn(status, responses, (where, answer.body))
        response = self.resolve(responses[status])
        content = response.get("content", {})
        if not content:
            self.assertEqual(answer.body, b"", where)
            return
        kind = answer.headers["content-type"].split(";")[0]
        self.assertIn(kind, content, where)
        if kind == "application/json":
            self.check(answer.json(), content[kind]["schema"], where)
        for name in response.get("headers", {}):
            if name != "Content-Encoding":
                self.assertIn(name.lower(), answer.headers, where)

    def ask(self, method, path, parameters=(), **options):
        path += "?" + "&".join(f"{name}={quote(value)}"
                               for name, value in dict(parameters).items())
        return self.server.ask(path.rstrip("?"), method=method.upper(),
                               **options)

    def operations(self):
        for path, operations in self.api["paths"].items():
            for method, operation in operations.items():
                yield path, method, operation

    def test_it_needs_no_token_and_has_the_version(self):
        self.assertEqual(self.answer.headers["content-type"],
                         "application/json")
        self.assertEqual(self.api["info"]["version"],
                         self.server.ask("/database").json()["version"])
        self.assertEqual(self.api["openapi"], "3.1.0")

    def test_it_has_all_paths_of_the_server(self):
        with open(os.path.join(os.environ["UVA_TEST_SOURCE"],
                               "tools/serve/site.c"), encoding="utf-8") as file:
            routes = re.findall(r'^    \{"(/[^"]*)", ', file.read(), re.M)
        self.assertGreater(len(routes), 8)
        self.assertEqual(sorted(routes), sorted(
            path.replace("{id}", "") for path in self.api["paths"]))

    def test_it_has_the_methods_of_each_path(self):
        for path, operations in self.api["paths"].items():
            answer = self.server.ask(path.replace("{id}", "1"), method="PATCH")
            self.assertEqual(answer.status, 405, path)
            allowed = set(answer.headers["allow"].lower().split(", "))
            self.assertEqual(allowed - {"head"}, set(operations), path)
            self.assertEqual("head" in allowed, "get" in operations, path)

    def test_each_answer_is_described(self):
        for path, method, operation in self.operations():
            where = f"{method} {path}"
            parameters = {p["name"]: VALUES[p["name"]]
                          for p in operation.get("parameters", ())
                          if p.get("required") and p["in"] == "query"}
            body = {"body": b"SELECT 1", "Content_Type": "application/sql"} \
                if method == "post" else {}
            answer = self.ask(method, path.replace("{id}", "999"), parameters,
                              **body)
            self.check_answer(answer, operation, where)
            self.assertEqual(answer.status, 404 if "{id}" in path else 200)

    def test_each_format_is_described(self):
        formats = self.server.ask("/database").json()["formats"]
        response = self.api["components"]["responses"]["Rows"]
        self.assertEqual({f["type"] for f in formats}, set(response["content"]))
        for path, method, operation in self.operations():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "format":
                    self.assertEqual(parameter["schema"]["enum"],
                                     [f["name"] for f in formats])
        for form in formats:
            for path in "/query?sql=SELECT+1+AS+a&", "/tables?":
                answer = self.server.ask(f"{path}format={form['name']}")
                self.check_answer(answer, self.api["paths"][path.split("?")[0]]
                                  ["get"], path)
                self.assertEqual(answer.headers["content-type"], form["type"])

    def test_the_parameters_are_those_of_the_server(self):
        for path, method, operation in self.operations():
            if "parameters" not in operation or "{id}" in path:
                continue
            names = [p["name"] for p in operation["parameters"]]
            refusal = self.ask(method, path, {"nonsense": "1"}).message()
            self.assertEqual(sorted(names), sorted(
                refusal.split("none of ")[1].split(", ")), path)
            if method == "get":
                answer = self.ask(method, path,
                                  {name: VALUES[name] for name in names})
                self.assertEqual(answer.status, 200, answer.body)

    def test_the_body_of_a_post(self):
        operation = self.api["paths"]["/query"]["post"]
        content = operation["requestBody"]["content"]
        value = {"sql": "SELECT ? AS a", "parameters": [1], "format": "json",
                 "timeout": 1000}
        schema = content["application/json"]["schema"]
        self.check(value, schema, "body")
        self.assertEqual(set(value), set(self.resolve(schema)["properties"]))
        for kind in content:
            body = json.dumps(value) if kind.endswith("json") else "SELECT 1"
            answer = self.ask("post", "/query", body=body.encode(),
                              Content_Type=kind)
            self.assertEqual(answer.status, 200, answer.body)
        answer = self.ask("post", "/query", body=b"a", Content_Type="text/html")
        self.check_answer(answer, operation, "text/html")
        self.assertEqual(answer.status, 415)

    def test_errors_are_described(self):
        operation = self.api["paths"]["/query"]["get"]
        silent = FOREVER.replace("SELECT i, ", "SELECT count(*), ")
        for parameters, status in (({"sql": "SELECT nothing"}, 400),
                                   ({"sql": "DROP TABLE numbers"}, 403),
                                   ({"sql": silent, "timeout": "20"}, 504)):
            answer = self.ask("get", "/query", parameters)
            self.assertEqual(answer.status, status)
            self.check_answer(answer, operation, parameters["sql"])
        answer = self.server.ask("/query?sql=SELECT+1", Accept="image/png")
        self.assertEqual(answer.status, 406)
        self.check_answer(answer, operation, "406")

    def test_a_query_under_way_and_its_end(self):
        silent = FOREVER.replace("SELECT i, ", "SELECT count(*), ")
        with self.server.client() as client:
            client.request("/query?sql=" + quote(silent))
            self.server.wait(lambda stats: stats["queries"]["running"])
            for path in "/queries", "/stats":
                answer = self.server.ask(path)
                self.check_answer(answer, self.api["paths"][path]["get"], path)
            number = self.server.ask("/queries").json()["queries"][0]["id"]
            answer = self.server.ask(f"/queries/{number}", method="DELETE")
            self.check_answer(answer, self.api["paths"]["/queries/{id}"]
                              ["delete"], "delete")
            self.check_answer(client.answer(),
                              self.api["paths"]["/query"]["get"], "409")


if __name__ == "__main__":
    main()
