// Rows of an embedding table that one client reads in a second, and reads and updates, from one server on this machine,
// beside what else keeps rows by keys: a gRPC stream in front of absl::flat_hash_map, as it is written in an afternoon
// and once more with prefetching, and redis. Each server is a process of its own, and this process is the client of all
// of them, in turns of a fraction of a second, so that a busy machine slows all of them alike. All keys have rows
// before anything is timed; one batch is on its way at a time.
//
//   lookup            a step pushes nothing and brings the next batch's rows
//   push and lookup   a step pushes the batch's gradients and brings the next batch's rows, with one message; AdaGrad
//
// batch_us is by the clock; client_cpu_us and server_cpu_us are processor time of a batch, which a busy machine changes
// less. Ours is reached over TCP and, with a server of its own, through shared memory; the streams over TCP, and redis
// over a Unix socket, which favours it.
//
//   sparse_push_pull_bench --rows=1000000 --batch=8192
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/bench_output.h"
#include "bench/bench_timing.h"
#include "bench/key_draws.h"
#include "bench/push_pull/child.h"
#include "bench/sparse/map_stream.h"
#include "bench/sparse/redis_rows.h"
#include "bench/sparse/redis_server.h"
#include "bench/sparse/row_client.h"
#include "bench/sparse/rubato_rows.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/status.h"
#include "common/table_keys.h"
#include "common/transport/process_tuning.h"

namespace rubato::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr char kOurs[] = "rubato", kShared[] = "rubato, shared memory", kStream[] = "grpc stream",
               kPrefetched[] = "grpc stream, prefetched", kRedis[] = "redis";
// Ours are the first subjects.
constexpr size_t kNumOurs = 2;

bool IsOurs(const std::string& subject) { return subject == kOurs || subject == kShared; }

struct Flags {
  SparseSetup setup;
  int64_t rows = 1'000'000;
  // Draws of a batch; keys that come again are left out.
  int64_t batch = 8192;
  int batches = 64;
  double zipf = 1.05;
  double seconds = 0.2;
  int rounds = 7;
  // Without the peers, and this case alone, if it is not empty: for a profiler.
  bool alone = false;
  std::string only;
  // For this program's own use: which server it is.
  std::string server;
};

using Keys = std::vector<uint64_t>;

struct Subject {
  std::string name;
  // Null: redis.
  std::unique_ptr<Child> server;
  std::unique_ptr<RowClient> client;
  // Of the server's process.
  pid_t process = 0;
};

struct Subjects {
  // Outlives the client.
  std::unique_ptr<RedisServer> redis;
  std::vector<Subject> all;
};

struct Case {
  std::string name;
  bool pushes;
  const std::vector<Keys>* batches;
};

// Of one subject in one case, by round.
struct Measured {
  std::vector<double> seconds_per_row, seconds_per_batch;
  // Of the processors, for a batch.
  std::vector<double> client_seconds, server_seconds;
  double bytes_per_row = 0;
};

// Processor time that a process, or this one for 0, has used.
double ProcessSeconds(pid_t process) {
  clockid_t clock;
  timespec used = {};
  if (clock_getcpuclockid(process, &clock) == 0) clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

SparseSetup SetupOf(const Flags& flags, const std::string& subject) {
  SparseSetup setup = flags.setup;
  setup.shared_memory = subject == kShared;
  return setup;
}

absl::Status PlayServer(const Flags& flags) {
  const auto ready = [](const std::string& address) { std::cout << "ready " << address << std::endl; };
  if (IsOurs(flags.server)) return ServeRubatoRows(SetupOf(flags, flags.server), ready);
  return ServeMapStream(flags.setup, flags.server == kPrefetched, ready);
}

// Servers first: a process that gRPC has threads in is not to be forked.
absl::StatusOr<Subjects> StartAll(const Flags& flags) {
  Subjects subjects;
  std::vector<std::string> addresses;
  std::vector<std::string> names = {kOurs, kShared};
  if (!flags.alone) names.insert(names.end(), {kStream, kPrefetched});
  for (const std::string& name : names) {
    std::vector<std::string> arguments = {
        absl::StrCat("--server=", name), absl::StrCat("--dimension=", flags.setup.dimension),
        absl::StrCat("--partitions=", flags.setup.partitions), absl::StrCat("--shards=", flags.setup.shards)};
    if (flags.setup.bf16) arguments.push_back("--bf16");
    RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Child> child, Child::Start(arguments));
    const absl::StatusOr<std::string> line = child->Ask("", kTimeout);
    if (!line.ok()) return Annotate(line.status(), name);
    addresses.emplace_back(absl::StripPrefix(*line, "ready "));
    const pid_t process = child->process();
    subjects.all.push_back({.name = name, .server = std::move(child), .client = nullptr, .process = process});
  }
  absl::StatusOr<std::unique_ptr<RedisServer>> redis = nullptr;
  if (!flags.alone) redis = RedisServer::Start();
  if (!redis.ok() && !absl::IsNotFound(redis.status())) return redis.status();
  for (size_t i = 0; i < subjects.all.size(); ++i) {
    Subject& subject = subjects.all[i];
    const SparseSetup setup = SetupOf(flags, subject.name);
    absl::StatusOr<std::unique_ptr<RowClient>> client =
        IsOurs(subject.name) ? ConnectRubatoRows(setup, addresses[i]) : ConnectMapStream(setup, addresses[i]);
    if (!client.ok()) return Annotate(client.status(), subject.name);
    subject.client = *std::move(client);
  }
  if (flags.alone) return subjects;
  if (!redis.ok()) {
    std::cout << redis.status().message() << ": its cases are left out" << std::endl;
    return subjects;
  }
  subjects.redis = *std::move(redis);
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<RowClient> client, ConnectRedisRows(flags.setup, *subjects.redis));
  subjects.all.push_back(
      {.name = kRedis, .server = nullptr, .client = std::move(client), .process = subjects.redis->process()});
  return subjects;
}

template <typename Next>
std::vector<Keys> Batches(const Flags& flags, const Next& next) {
  std::vector<Keys> batches(flags.batches);
  for (Keys& batch : batches) {
    for (int64_t i = 0; i < flags.batch; ++i) batch.push_back(KeyAt(next()));
    SortByHash(HashOfTable(kJobSeed, 0), batch);
  }
  return batches;
}

// All keys get their rows.
absl::Status Fill(const Flags& flags, const std::vector<float>& gradients, RowClient* client) {
  Keys keys;
  for (int64_t i = 0; i < flags.rows; ++i) keys.push_back(KeyAt(i));
  SortByHash(HashOfTable(kJobSeed, 0), keys);
  for (auto first = keys.begin(); first != keys.end();) {
    const auto last = first + std::min<ptrdiff_t>(flags.batch, keys.end() - first);
    RUBATO_RETURN_IF_ERROR(client->Exchange({first, last}, gradients, {}));
    first = last;
  }
  return absl::OkStatus();
}

// Each brings what was pushed: redis the gradients themselves, and the others weights that they agree on.
absl::Status Verify(const Flags& flags, const Keys& keys, const std::vector<float>& gradients,
                    const Subjects& subjects) {
  const int dimension = flags.setup.dimension;
  // Three numbers of 8 digits: a gradient, a weight that is rounded at random, and what is sent of it.
  const float tolerance = flags.setup.bf16 ? kLearningRate / 32 : 1e-6f;
  const size_t floats = keys.size() * dimension;
  std::vector<float> ours;
  for (const Subject& subject : subjects.all) {
    RUBATO_RETURN_IF_ERROR(subject.client->Exchange(keys, gradients, keys));
    const float* const rows = subject.client->rows();
    if (subject.name == kOurs) ours.assign(rows, rows + floats);
    const std::vector<float>& expected = subject.name == kRedis ? gradients : ours;
    for (size_t i = 0; i < floats; ++i) {
      if (std::abs(rows[i] - expected[i]) <= tolerance) continue;
      return absl::DataLossError(absl::StrCat(subject.name, ": weight ", i % dimension, " of key ", keys[i / dimension],
                                              " is ", rows[i], " instead of ", expected[i]));
    }
  }
  if (std::any_of(ours.begin(), ours.end(), [](float weight) { return weight != 0; })) return absl::OkStatus();
  return absl::DataLossError("nothing was updated");
}

// One turn of a subject in a case; its first exchange is not timed.
absl::Status RunTurn(const Flags& flags, const Case& one, const std::vector<float>& gradients, const Subject& subject,
                     Measured* measured) {
  RowClient* const client = subject.client.get();
  const RealClock clock;
  const std::vector<Keys>& batches = *one.batches;
  const Keys none;
  RUBATO_RETURN_IF_ERROR(client->Exchange(none, gradients, batches[0]));
  const int64_t bytes = client->payload_bytes();
  int64_t rows = 0, exchanges = 0;
  const double client_begin = ProcessSeconds(0), server_begin = ProcessSeconds(subject.process);
  const absl::Time begin = clock.Now();
  absl::Duration elapsed;
  do {
    const Keys& now = batches[exchanges % flags.batches];
    const Keys& next = batches[(exchanges + 1) % flags.batches];
    RUBATO_RETURN_IF_ERROR(client->Exchange(one.pushes ? now : none, gradients, next));
    rows += static_cast<int64_t>(next.size());
    ++exchanges;
    elapsed = clock.Now() - begin;
  } while (elapsed < absl::Seconds(flags.seconds));
  const double seconds = absl::ToDoubleSeconds(elapsed);
  measured->seconds_per_row.push_back(seconds / static_cast<double>(rows));
  measured->seconds_per_batch.push_back(seconds / static_cast<double>(exchanges));
  measured->client_seconds.push_back((ProcessSeconds(0) - client_begin) / static_cast<double>(exchanges));
  measured->server_seconds.push_back((ProcessSeconds(subject.process) - server_begin) / static_cast<double>(exchanges));
  measured->bytes_per_row = static_cast<double>(client->payload_bytes() - bytes) / static_cast<double>(rows);
  return absl::OkStatus();
}

// By case and subject.
absl::StatusOr<std::vector<std::vector<Measured>>> RunRounds(const Flags& flags, const std::vector<Case>& cases,
                                                             const std::vector<float>& gradients,
                                                             const Subjects& subjects) {
  std::vector<std::vector<Measured>> measured(cases.size(), std::vector<Measured>(subjects.all.size()));
  for (int round = 0; round < flags.rounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      for (size_t j = 0; j < subjects.all.size(); ++j) {
        const Subject& subject = subjects.all[j];
        const absl::Status status = RunTurn(flags, cases[i], gradients, subject, &measured[i][j]);
        if (!status.ok()) return Annotate(status, absl::StrCat(subject.name, ", ", cases[i].name));
      }
    }
  }
  return measured;
}

void Print(const std::vector<Case>& cases, const Subjects& subjects,
           const std::vector<std::vector<Measured>>& measured) {
  std::vector<BenchCase> lines, ratios;
  for (size_t i = 0; i < cases.size(); ++i) {
    double keys = 0;
    for (const Keys& batch : *cases[i].batches) keys += static_cast<double>(batch.size());
    BenchCase ratio = {cases[i].name, {{"keys_per_batch", keys / static_cast<double>(cases[i].batches->size())}}};
    for (size_t j = 0; j < subjects.all.size(); ++j) {
      const Measured& one = measured[i][j];
      lines.push_back({absl::StrCat(cases[i].name, ": ", subjects.all[j].name),
                       {{"rows_per_s", 1 / Median(one.seconds_per_row)},
                        {"batch_us", 1e6 * Median(one.seconds_per_batch)},
                        {"client_cpu_us", 1e6 * Median(one.client_seconds)},
                        {"server_cpu_us", 1e6 * Median(one.server_seconds)},
                        {"payload_bytes_per_row", one.bytes_per_row}}});
      for (size_t ours = 0; ours < kNumOurs && j >= kNumOurs; ++ours) {
        ratio.values.emplace_back(absl::StrCat(subjects.all[ours].name, "/", subjects.all[j].name),
                                  MedianRatio(one.seconds_per_row, measured[i][ours].seconds_per_row));
      }
    }
    ratios.push_back(std::move(ratio));
  }
  PrintCases(lines);
  PrintCases(ratios);
}

absl::Status Measure(const Flags& flags) {
  Random random(4);
  Zipf zipf(flags.rows, flags.zipf, 5);
  const std::vector<Keys> uniform =
      Batches(flags, [&] { return static_cast<int64_t>(random.Below(static_cast<uint64_t>(flags.rows))); });
  const std::vector<Keys> skewed = Batches(flags, [&] { return zipf.Next(); });
  const std::vector<float> gradients = NormalValues(flags.batch * flags.setup.dimension, 3);
  RUBATO_ASSIGN_OR_RETURN(const Subjects subjects, StartAll(flags));
  for (const Subject& subject : subjects.all) {
    RUBATO_RETURN_IF_ERROR(Annotate(Fill(flags, gradients, subject.client.get()), subject.name));
  }
  RUBATO_RETURN_IF_ERROR(Verify(flags, uniform[0], gradients, subjects));
  std::vector<Case> cases = {{"lookup, uniform", false, &uniform},
                             {"push and lookup, uniform", true, &uniform},
                             {"lookup, Zipf", false, &skewed},
                             {"push and lookup, Zipf", true, &skewed}};
  std::erase_if(cases, [&](const Case& one) { return !flags.only.empty() && one.name != flags.only; });
  RUBATO_ASSIGN_OR_RETURN(const auto measured, RunRounds(flags, cases, gradients, subjects));
  Print(cases, subjects, measured);
  return absl::OkStatus();
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--rows", flags->rows, "Rows of the table")
      ->check(CLI::Range(1000, 100'000'000))
      ->capture_default_str();
  app->add_option("--dimension", flags->setup.dimension, "Weights of a row")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--batch", flags->batch, "Draws of a batch")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app->add_option("--batches", flags->batches, "Batches that are gone through again and again")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  app->add_option("--zipf", flags->zipf, "Exponent of Zipf's distribution")
      ->check(CLI::Range(1.001, 10.0))
      ->capture_default_str();
  app->add_option("--partitions", flags->setup.partitions, "cluster.partitions_per_server")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--shards", flags->setup.shards, "model.tables.shards")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64, 128, 256}))
      ->capture_default_str();
  app->add_flag("--bf16", flags->setup.bf16, "Weights, gradients and rows of ours in 16 bits");
  app->add_option("--seconds", flags->seconds, "Of a turn")->check(CLI::Range(0.001, 60.0))->capture_default_str();
  app->add_option("--rounds", flags->rounds, "Turns of each case")->check(CLI::Range(1, 1000))->capture_default_str();
  app->add_flag("--alone", flags->alone, "Without the peers, for a profiler");
  app->add_option("--only", flags->only, "One case alone")
      ->check(CLI::IsMember({"lookup, uniform", "push and lookup, uniform", "lookup, Zipf", "push and lookup, Zipf"}));
  app->add_option("--server", flags->server)->check(CLI::IsMember({kOurs, kShared, kStream, kPrefetched}))->group("");
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) {
  rubato::UseHugePages();
  rubato::TuneProcess();
  rubato::ScheduleAsBatch();
  rubato::bench::Flags flags;
  CLI::App app("Rows of an embedding table a second between a client and a server", "sparse_push_pull_bench");
  rubato::bench::AddFlags(&app, &flags);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = flags.server.empty() ? rubato::bench::Measure(flags) : rubato::bench::PlayServer(flags);
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}
