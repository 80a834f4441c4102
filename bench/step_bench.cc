// How much of a worker's speed is left when its parameters are on a server: the MNIST perceptron, trained by the real
// trainer, client and server, against the same loop with the optimizer applied in process. All processes of all cases
// are there at the same time and interleaved, so that a busy machine slows all of them alike.
//
//   step_bench --batch=128 --rounds=9
#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/bench_output.h"
#include "bench/job_server.h"
#include "bench/push_pull/child.h"
#include "bench/step/cpu_transfer.h"
#include "bench/step/step_job.h"
#include "bench/step/worker_loop.h"
#include "common/status.h"
#include "common/transport/process_tuning.h"

namespace rubato::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

struct Flags {
  StepSetup setup;
  double seconds = 0.5;
  int rounds = 9;
  // For this program's own use.
  std::string role;
  std::string server;
  uint32_t index = 0;
  std::vector<int> cores;
};

// One way to train.
struct Case {
  std::string name;
  bool has_server;
  StepSetup setup;
  // Of each worker, and of the server; empty: any.
  std::vector<std::vector<int>> worker_cores;
  std::vector<int> server_cores;
};

struct Running {
  Case what;
  std::unique_ptr<Child> server;
  std::vector<std::unique_ptr<Child>> workers;
  std::vector<double> examples_per_s = {};
  std::vector<double> pull_wait_us = {};
};

std::vector<std::string> PartFlags(const StepSetup& setup, const std::string& role, const std::vector<int>& cores) {
  std::vector<std::string> flags = {absl::StrCat("--role=", role),
                                    absl::StrCat("--batch=", setup.batch),
                                    absl::StrCat("--workers=", setup.workers),
                                    absl::StrCat("--chunk_bytes=", setup.chunk_bytes),
                                    absl::StrCat("--message_bytes=", setup.message_bytes),
                                    absl::StrCat("--partitions=", setup.partitions),
                                    absl::StrCat("--shared_memory=", setup.shared_memory ? "true" : "false"),
                                    absl::StrCat("--overlap=", setup.overlap ? "true" : "false"),
                                    absl::StrCat("--copies=", setup.copies ? "true" : "false")};
  if (!cores.empty()) flags.push_back(absl::StrCat("--cores=", absl::StrJoin(cores, ",")));
  return flags;
}

absl::StatusOr<std::string> Expect(Child* child, const std::string& line, const std::string& word) {
  RUBATO_ASSIGN_OR_RETURN(std::string reply, child->Ask(line, kTimeout));
  absl::string_view rest = reply;
  if (!absl::ConsumePrefix(&rest, word)) return absl::InternalError(reply);
  return std::string(rest);
}

absl::StatusOr<Running> Start(const Case& what) {
  Running running{.what = what, .server = nullptr, .workers = {}};
  std::string server;
  if (what.has_server) {
    RUBATO_ASSIGN_OR_RETURN(running.server, Child::Start(PartFlags(what.setup, "server", what.server_cores)));
    RUBATO_ASSIGN_OR_RETURN(server, Expect(running.server.get(), "", "ready "));
  }
  for (int i = 0; i < what.setup.workers; ++i) {
    std::vector<std::string> flags = PartFlags(what.setup, "worker", what.worker_cores[i]);
    flags.push_back(absl::StrCat("--index=", i));
    if (what.has_server) flags.push_back(absl::StrCat("--server=", server));
    RUBATO_ASSIGN_OR_RETURN(running.workers.emplace_back(), Child::Start(flags));
  }
  for (const auto& worker : running.workers) RUBATO_RETURN_IF_ERROR(Expect(worker.get(), "", "ready").status());
  return running;
}

// All workers at the same time; their rates are added up.
absl::Status RunOnce(double seconds, bool count, Running* running) {
  std::vector<absl::StatusOr<std::string>> replies(running->workers.size(), std::string());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < running->workers.size(); ++i) {
    threads.emplace_back(
        [&, i] { replies[i] = Expect(running->workers[i].get(), absl::StrCat("run ", seconds), "did "); });
  }
  for (std::thread& thread : threads) thread.join();
  double rate = 0, wait = 0;
  for (const auto& reply : replies) {
    RUBATO_RETURN_IF_ERROR(reply.status());
    const std::vector<std::string> parts = absl::StrSplit(*reply, ' ');
    double examples_per_s = 0, pull_wait_us = 0;
    if (parts.size() != 2 || !absl::SimpleAtod(parts[0], &examples_per_s) ||
        !absl::SimpleAtod(parts[1], &pull_wait_us)) {
      return absl::InternalError(absl::StrCat("\"", *reply, "\" is not two numbers"));
    }
    rate += examples_per_s;
    wait += pull_wait_us / static_cast<double>(replies.size());
  }
  if (!count) return absl::OkStatus();
  running->examples_per_s.push_back(rate);
  running->pull_wait_us.push_back(wait);
  return absl::OkStatus();
}

std::vector<Case> Cases(StepSetup setup) {
  StepSetup tcp = setup, shared_serial = setup, tcp_serial = setup;
  tcp.shared_memory = tcp_serial.shared_memory = false;
  shared_serial.overlap = tcp_serial.overlap = false;
  std::vector<Case> cases = {{"in process", false, setup, {{0}}, {}},
                             {"shared memory", true, setup, {{0}}, {1}},
                             {"shared memory, no overlap", true, shared_serial, {{0}}, {1}},
                             {"tcp", true, tcp, {{0}}, {1}},
                             {"tcp, no overlap", true, tcp_serial, {{0}}, {1}}};
  setup.workers = tcp.workers = 2;
  cases.push_back({"2 alone", false, setup, {{0}, {1}}, {}});
  // About what a program with a server can reach over TCP at most: the same, and the system's copies.
  StepSetup copies = setup;
  copies.copies = true;
  cases.push_back({"2 alone, copies of TCP", false, copies, {{0}, {1}}, {}});
  // Workers that fill the CPUs stay on one each, as `rubato run` and `rubato train` start them.
  cases.push_back({"2 workers, shared memory", true, setup, {{0}, {1}}, {0, 1}});
  cases.push_back({"2 workers, tcp", true, tcp, {{0}, {1}}, {0, 1}});
  return cases;
}

absl::Status Measure(const Flags& flags) {
  std::vector<Running> running;
  for (const Case& what : Cases(flags.setup)) {
    absl::StatusOr<Running> started = Start(what);
    if (!started.ok()) return Annotate(started.status(), what.name);
    running.push_back(*std::move(started));
  }
  std::vector<double> between_cpus;
  for (int round = -1; round < flags.rounds; ++round) {
    if (round >= 0) between_cpus.push_back(OverwriteGbPerS(0, 1));
    for (Running& one : running) RUBATO_RETURN_IF_ERROR(RunOnce(flags.seconds, round >= 0, &one));
  }
  std::vector<BenchCase> cases;
  for (const Running& one : running) {
    // Of the same round: the limit that the case is measured against.
    const Running& limit = running[one.what.setup.workers == 1 ? 0 : 5];
    std::vector<double> ratios;
    for (size_t i = 0; i < one.examples_per_s.size(); ++i) {
      ratios.push_back(one.examples_per_s[i] / limit.examples_per_s[i]);
    }
    cases.push_back({one.what.name,
                     {{"examples_per_s", Median(one.examples_per_s)},
                      {"ratio", Median(ratios)},
                      {"pull_wait_us_per_step", Median(one.pull_wait_us)}}});
  }
  PrintCases(cases);
  std::cout << "CPU 0 overwrites what CPU 1 has read, GB/s in each round:";
  for (const double rate : between_cpus) std::cout << absl::StreamFormat(" %.1f", rate);
  std::cout << std::endl;
  return absl::OkStatus();
}

absl::Status PlayServer(const Flags& flags) {
  RUBATO_ASSIGN_OR_RETURN(const StepJob job, MakeStepJob(flags.setup, TheServer()));
  return ServeJob(job.config, job.description, job.plan,
                  [](const v1::ServerInfo& info) { std::cout << "ready " << info.ShortDebugString() << std::endl; });
}

absl::Status PlayWorker(const Flags& flags) {
  v1::ServerInfo server;
  if (!flags.server.empty()) {
    RUBATO_ASSIGN_OR_RETURN(server, ParseServerInfo(flags.server));
  }
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerLoop> loop,
                          WorkerLoop::Start(flags.setup, flags.index, flags.server.empty() ? nullptr : &server));
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    absl::string_view rest = line;
    double seconds = 0;
    if (!absl::ConsumePrefix(&rest, "run ") || !absl::SimpleAtod(rest, &seconds)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", line, "\" is not run SECONDS"));
    }
    RUBATO_ASSIGN_OR_RETURN(const WorkerLoop::Result result, loop->Run(absl::Seconds(seconds)));
    std::cout << "did " << static_cast<double>(result.examples) / absl::ToDoubleSeconds(result.elapsed) << " "
              << absl::ToDoubleMicroseconds(result.pull_wait) / static_cast<double>(result.steps) << std::endl;
  }
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  if (flags.role.empty()) return Measure(flags);
  RUBATO_RETURN_IF_ERROR(PinProcess(flags.cores));
  absl::Status status = flags.role == "server" ? PlayServer(flags) : PlayWorker(flags);
  if (!status.ok()) std::cout << "error " << status.message() << std::endl;
  return status;
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--batch", flags->setup.batch, "Examples of a worker's batch")->check(CLI::Range(1, 1 << 20));
  app->add_option("--chunk_bytes", flags->setup.chunk_bytes, "cluster.chunk_bytes")->check(CLI::Range(4096, 64 << 20));
  app->add_option("--message_bytes", flags->setup.message_bytes, "cluster.message_bytes")
      ->check(CLI::Range(4096, 64 << 20));
  app->add_option("--partitions", flags->setup.partitions, "cluster.partitions_per_server")->check(CLI::Range(1, 64));
  app->add_option("--seconds", flags->seconds, "Of a round")->check(CLI::Range(0.01, 60.0));
  app->add_option("--rounds", flags->rounds, "Of each case")->check(CLI::Range(1, 1000));
  app->add_option("--role", flags->role)->check(CLI::IsMember({"server", "worker"}))->group("");
  app->add_option("--workers", flags->setup.workers)->group("");
  app->add_option("--shared_memory", flags->setup.shared_memory)->group("");
  app->add_option("--overlap", flags->setup.overlap)->group("");
  app->add_option("--copies", flags->setup.copies)->group("");
  app->add_option("--server", flags->server)->group("");
  app->add_option("--index", flags->index)->group("");
  app->add_option("--cores", flags->cores)->delimiter(',')->group("");
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) {
  rubato::UseHugePages();
  rubato::TuneProcess();
  rubato::ScheduleAsBatch();
  rubato::bench::Flags flags;
  CLI::App app("What of a worker's speed is left with its parameters on a server");
  rubato::bench::AddFlags(&app, &flags);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = rubato::bench::Run(flags);
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}
