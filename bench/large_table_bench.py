#!/usr/bin/env python3
"""Trains a model whose table has more rows than a worker could hold: each worker's memory is limited, and the table, on four
servers, grows past that limit by far.

A recommender in the form of Criteo's, 13 numbers and 26 keys an example, on generated clicks whose keys are nearly all
different, so that each example brings 26 new rows. Each worker's private memory is limited (RLIMIT_DATA) as soon as it is
there. Every --every seconds it prints the rows, the memory of the tables on all servers, the most that a worker ever had
resident, and examples a second; at --rows rows it stops the job, and ends with status 1 if the job failed or a worker was
started again.

    bazel build //cli/command:rubato //coordinator //server //worker
    bench/large_table_bench.py --rows=100000000
"""

import argparse
import http.client
import json
import resource
import socket
import tempfile
import time

from local_job import LocalJob

WIDTH = 8
CONFIG = """
name: "large_table_bench"
cluster {{ servers: 4 workers: 2 }}
model {{
  input_shape: 13
  tables {{
    name: "keys" dimension: {width} keys_per_example: 26 algorithm: ROW_WISE_ADAGRAD learning_rate: 0.05
    initial_bound: 0.02
  }}
  layers {{
    name: "vectors"
    branches {{
      branches {{
        end: 13
        layers {{ linear {{ units: 32 }} }} layers {{ relu {{}} }}
        layers {{ linear {{ units: {width} }} }} layers {{ relu {{}} }}
      }}
      branches {{ begin: 13 }}
    }}
  }}
  layers {{ dot_interaction {{ width: {width} }} }}
  layers {{ linear {{ units: 64 }} }} layers {{ relu {{}} }}
  layers {{ linear {{ units: 1 weight_initializer: LECUN_NORMAL }} }}
  loss: BINARY_CROSS_ENTROPY
}}
data {{ clicks {{ train_examples: 1000000000 test_examples: 1 keys: 1099511627776 exponent: 0.01 }} dispatch: DYNAMIC }}
optimizer {{ algorithm: ADAGRAD learning_rate: 0.02 }}
consistency {{ mode: {mode} }}
training {{ batch_size: {batch} max_steps: 100000000 }}
observability {{ no_tensorboard: true }}
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def get(address, path):
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def tables_of(port):
    """Rows, and bytes, of all servers together."""
    sums = {"rubato_server_table_rows": 0.0, "rubato_server_table_bytes": 0.0}
    for group in json.loads(get(f"127.0.0.1:{port}", "/targets")):
        for target in group["targets"]:
            for line in get(target, "/metrics").splitlines():
                name = line.split("{")[0].split(" ")[0]
                if name in sums:
                    sums[name] += float(line.rsplit(" ", 1)[1])
    return sums["rubato_server_table_rows"], sums["rubato_server_table_bytes"]


def peak_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--limit_mib", type=int, default=1024, help="of each worker's private memory")
    parser.add_argument("--mode", default="ASYNC", help="SYNC or ASYNC")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--binaries", default="bazel-bin")
    options = parser.parse_args()
    port = free_port()
    config = CONFIG.format(width=WIDTH, mode=options.mode, batch=options.batch)
    metrics = f"--metrics_listen=127.0.0.1:{port}"
    with (tempfile.TemporaryDirectory(prefix="rubato-large-table-") as work,
          LocalJob(options.binaries, work, config, metrics) as job):
        job.wait_for("worker", lambda: len(list(job.tasks("worker"))) == 2, 120)
        workers = sorted(job.tasks("worker"))
        for pid in workers:
            resource.prlimit(pid, resource.RLIMIT_DATA, (options.limit_mib << 20, options.limit_mib << 20))
        job.wait_until_it_trains()
        begin, rows = time.monotonic(), 0
        while rows < options.rows:
            time.sleep(options.every)
            if job.launcher.poll() is not None:
                job.fail("the job has ended")
            if sorted(job.tasks("worker")) != workers:
                job.fail("a worker was started again")
            rows, table_bytes = tables_of(port)
            progress = job.lines("progress")[-1]
            print(json.dumps({
                "seconds": round(time.monotonic() - begin), "rows": int(rows),
                "weights_mib": round(rows * WIDTH * 4 / 2**20), "tables_mib": round(table_bytes / 2**20),
                "bytes_per_row": round(table_bytes / max(rows, 1), 1),
                "worker_limit_mib": options.limit_mib, "worker_peak_mib": [round(peak_mib(pid)) for pid in workers],
                "examples": int(progress["examples"]), "examples_per_second": round(progress["examples_per_second"]),
                "loss": progress.get("loss"),
            }), flush=True)


if __name__ == "__main__":
    main()
