# SPDX-License-Identifier: Apache-2.0
"""Engines on the hosts, with the packages of scripts/requirements-engines.txt: a
class each, with what runs on a host, and the stream that reader.py makes of it.

Usage: engine.py ENGINE HOST: runs there, and prints "ready".

A part gives batches as those of server.py. Each writes a line into the file
$UVA_HOSTS_LOG when it begins, for each batch, and when it ends: the host, the process
and the word, so that a host that is cut off can be watched, too.
"""
import asyncio
import os
import subprocess
import sys
import time

import uvarrow

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = "10.77.0.10"


def log(word):
    with open(os.environ["UVA_HOSTS_LOG"], "a", encoding="ascii") as file:
        file.write(f"{os.environ['UVA_HOSTS_HOST']} {os.getpid()} {word}\n")


def batch(part, number, rows):
    import server
    return server.batch(part, number, rows)


def limited(rows, how, name):
    """As a program would have it: with a name, and limits"""
    rows.name(name)
    return rows.timeout(**how["limits"]) if how["limits"] else rows


def say_ready():
    print("ready", flush=True)


class Dask:
    """A scheduler beside the reader, and a worker on each host"""

    def __init__(self, how):
        from distributed import Client
        self.how, self.client = how, Client(f"tcp://{HEAD}:8786")

    def rows(self):
        import uvarrow.dask
        how = self.how
        tasks = [(dask_task, number, how["rows"], how["work"])
                 for number in range(how["parts"] * how["batches"])]
        return limited(uvarrow.dask.stream(self.client, tasks, window=2,
                                           **{"ahead": 12, **how["options"]}),
                       how, "Dask")

    def close(self):
        self.client.close()

    @staticmethod
    def node(host):
        asyncio.run(dask_node(host))


async def dask_node(host):
    import dask
    from distributed import Scheduler, Worker
    # By default it is 5 minutes until a worker that is cut off is given up
    dask.config.set({"distributed.scheduler.worker-ttl": "5s"})
    async with (Scheduler(host=HEAD, port=8786, dashboard=False) if host == "c" else
                Worker(f"tcp://{HEAD}:8786", name=host, nthreads=2)) as node:
        say_ready()
        await node.finished()


def dask_task(number, rows, work):
    log("open")
    time.sleep(work)
    log("made")
    log("shut")
    return batch(0, number, rows)


class Ray:
    """A head beside the reader, and a node on each host, with an actor there"""
    STREAMING = {"num_returns": "streaming", "_generator_backpressure_num_objects": 4}

    def __init__(self, how):
        import ray
        self.how = how
        ray.init(address=f"{HEAD}:6379", logging_level="error", log_to_driver=False)
        actor = ray.remote(num_cpus=0, **how["options"])(RayPart)
        self.actors = [actor.options(resources={f"host{host}": 1}).remote()
                       for host in "123"]

    def rows(self):
        import uvarrow.ray
        how = self.how
        return uvarrow.merge(*(
            limited(uvarrow.ray.stream(actor.batches.options(**self.STREAMING).remote(
                part, how["batches"], how["rows"], how["work"]), window=2), how,
                f"10.77.0.{part + 1}")
            for part, actor in enumerate(self.actors)))

    def close(self):
        import ray
        ray.shutdown()

    @staticmethod
    def node(host):
        ray = [os.path.join(os.path.dirname(sys.executable), "ray"), "start",
               "--block", "--num-cpus", "2", "--object-store-memory", "200000000",
               "--disable-usage-stats", "--log-style", "pretty", "--log-color",
               "false"]
        os.environ["RAY_NUM_REDIS_GET_RETRIES"] = "120"  # seconds, for its head
        os.makedirs("/tmp/ray", exist_ok=True)
        for folder in "/tmp/ray", "/dev/shm":  # of this host alone
            subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
        if host == "c":
            ray += ["--head", "--node-ip-address", HEAD, "--port", "6379",
                    "--include-dashboard", "false"]
        else:
            ray += ["--address", f"{HEAD}:6379", "--node-ip-address",
                    f"10.77.0.{host}", "--resources", f'{{"host{host}": 10}}']
        os.execv(ray[0], ray)


class RayPart:
    async def batches(self, part, count, rows, work):
        log("open")
        try:
            for number in range(count):
                await asyncio.sleep(work)
                log("made")
                yield batch(part, number, rows)
        finally:
            log("shut")


class Sail:
    """A server of Spark Connect on host 2: its workers on other hosts need
    Kubernetes"""
    PARTITIONS = 1
    KEEPALIVE_MS = 2000

    def __init__(self, how):
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession
        self.how = how
        # By default Spark's client waits for ever for a host that is cut off, and
        # calls a server that is gone for ten minutes: its process ends no sooner
        channel = DefaultChannelBuilder("sc://10.77.0.2:8815")
        if self.KEEPALIVE_MS:
            channel.setChannelOption("grpc.keepalive_time_ms", self.KEEPALIVE_MS)
            channel.setChannelOption("grpc.keepalive_timeout_ms", self.KEEPALIVE_MS)
        self.session = SparkSession.builder.channelBuilder(channel).getOrCreate()
        self.session.client.set_retry_policies([DefaultPolicy(max_retries=3)])

    def rows(self):
        import uvarrow.spark
        how = self.how
        frame = self.session.range(0, how["batches"] * how["rows"], 1, self.PARTITIONS)
        frame = frame.selectExpr("CAST(0 AS INT) AS part", "id AS n")
        # Without a filter its batches are small
        frame = frame.where("sha2(repeat(CAST(n AS STRING), 100), 512) <> 'x'"
                            if how["work"] else "n % 7 <> 9")
        if how["options"].get("long"):  # no row comes for minutes
            frame = self.session.range(1 << 40).selectExpr("sum(id * id % 7) AS n")
        return limited(uvarrow.spark.stream(frame, window=2), how, "10.77.0.2")

    def close(self):
        self.session.client.close()  # stop() asks the server first, without a limit

    @staticmethod
    def node(host):
        os.environ["SAIL_EXECUTION__DEFAULT_PARALLELISM"] = "1"  # rows in order
        from pysail.spark import SparkConnectServer
        server = SparkConnectServer(f"10.77.0.{host}", 8815)
        server.start()
        say_ready()
        sys.stdin.read()
        server.stop()


class Spark(Sail):
    """Spark itself, which needs Java 17; it sends each partition when it has all of
    it"""
    PARTITIONS = 40
    KEEPALIVE_MS = None  # it ends a connection that asks more often than in 5 minutes

    @staticmethod
    def node(host):
        import pyspark
        home = os.path.dirname(pyspark.__file__)
        with subprocess.Popen(
                [os.path.join(home, "bin/spark-submit"), "--class",
                 "org.apache.spark.sql.connect.service.SparkConnectServer",
                 "--master", "local[2]", "--driver-memory", "1g",
                 "--conf", f"spark.connect.grpc.binding.address=10.77.0.{host}",
                 "--conf", "spark.connect.grpc.binding.port=8815",
                 "--conf", "spark.ui.enabled=false", "spark-internal"],
                env={**os.environ, "SPARK_HOME": home,
                     "SPARK_LOCAL_IP": f"10.77.0.{host}"},
                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
            for line in server.stderr:  # its log
                if "Connect server started" in line:
                    say_ready()


if __name__ == "__main__":
    import engine  # its functions are found by this name on other hosts
    getattr(engine, sys.argv[1]).node(sys.argv[2])
