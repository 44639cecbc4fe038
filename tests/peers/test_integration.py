#!/usr/bin/env python3
"""uvarrow by itself in the integration tests of Arrow: tests/peers/integration with
every type, and, if UVA_ARROW_TESTING names a copy of apache/arrow-testing, with the
JSON files of all versions there, which its Arrow files must agree with."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cdata
import columns
import every_type
import ours

FOLDER = "data/arrow-ipc-stream/integration"
SEEDS = 1, 2, 3


def integration(*words, given=b""):
    return subprocess.run([sys.executable, HERE / "integration", *words],
                          input=given, capture_output=True, check=False)


class EveryType(unittest.TestCase):
    def documents(self):
        for seed in SEEDS:
            for name, document in every_type.documents(seed).items():
                with self.subTest(seed=seed, document=name):
                    yield columns.from_json(json.loads(json.dumps(document)))

    def test_json_is_read_as_it_is_written(self):
        for document in self.documents():
            again = columns.from_json(columns.to_json(document))
            self.assertIsNone(columns.difference(document, again))

    def test_structs_have_the_same_values(self):
        for document in self.documents():
            again = cdata.import_stream(cdata.export_stream(document))
            self.assertIsNone(columns.difference(document, again))
        self.assertEqual(cdata.alive(), 0)

    def test_written_and_read(self):
        with tempfile.NamedTemporaryFile() as file:
            for number, document in enumerate(self.documents()):
                for form in ours.STREAM, ours.FILE:
                    file.truncate(0)
                    file.seek(0)
                    file.write(ours.written(document, form, number % 3))
                    file.flush()
                    for mapped in False, True:
                        self.assertIsNone(columns.difference(
                            document, ours.read(file.name, mapped)))

    def test_through_a_runtime_in_slices(self):
        """The slices begin anywhere in a byte, and in a run."""
        for document in self.documents():
            stream = ours.passed(cdata.export_stream(document), rows=5)
            found = cdata.import_stream(stream)
            self.assertEqual(joined(document), joined(found))


def joined(document):
    """The values of each column of all batches."""
    made = [[] for _ in document.fields]
    for _, part in document.rows():
        for column, values in zip(made, part):
            column += values
    return made


class Command(unittest.TestCase):
    """What Archery calls."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "a.json"
        self.arrow = self.folder / "a.arrow"
        document = every_type.documents(1)["struct_of_dictionaries"]
        self.json.write_text(json.dumps(document), encoding="utf-8")

    def run_mode(self, mode, *words, given=b""):
        done = integration("--mode", mode, *words, given=given)
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def files(self):
        return "--json", self.json, "--arrow", self.arrow

    def test_a_file_of_json_and_back(self):
        self.run_mode("JSON_TO_ARROW", *self.files())
        self.run_mode("VALIDATE", *self.files())
        other = self.folder / "b.json"
        self.run_mode("ARROW_TO_JSON", "--json", other, "--arrow", self.arrow)
        self.assertIsNone(columns.difference(columns.load(self.json),
                                             columns.load(other)))

    def test_file_to_stream_and_back(self):
        self.run_mode("JSON_TO_ARROW", *self.files())
        stream = self.run_mode("FILE_TO_STREAM", given=self.arrow.read_bytes())
        self.assertEqual(stream[:4], b"\xff\xff\xff\xff")
        self.arrow.write_bytes(self.run_mode("STREAM_TO_FILE", given=stream))
        self.run_mode("VALIDATE", *self.files())

    def test_another_value_is_told(self):
        self.run_mode("JSON_TO_ARROW", *self.files())
        changed = json.loads(self.json.read_text(encoding="utf-8"))
        changed["batches"][2]["columns"][1]["children"][1]["VALIDITY"][0] ^= 1
        self.json.write_text(json.dumps(changed), encoding="utf-8")
        done = integration("--mode", "VALIDATE", *self.files())
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"batch 2", done.stderr)

    def test_a_document_for_every_type(self):
        self.run_mode("GENERATE", "--json", self.folder / "all", "--seed", "2")
        self.assertGreater(len(list((self.folder / "all").glob("*.json"))), 80)


@unittest.skipUnless("UVA_ARROW_TESTING" in os.environ,
                     "UVA_ARROW_TESTING is not set")
class Golden(unittest.TestCase):
    def test_each_file_has_the_values_of_its_json(self):
        folder = pathlib.Path(os.environ["UVA_ARROW_TESTING"]) / FOLDER
        compared = 0
        for path in sorted(folder.glob("*/*.json.gz")):
            expected = columns.load(path)
            for suffix in ".stream", ".arrow_file":
                arrow = path.parent / path.name.replace(".json.gz", suffix)
                if arrow.exists():
                    with self.subTest(file=str(arrow)):
                        self.assertIsNone(columns.difference(
                            expected, ours.read(arrow)))
                        compared += 1
        print(f"{compared} files agree with their JSON")
        self.assertGreater(compared, 100)


if __name__ == "__main__":
    unittest.main()
