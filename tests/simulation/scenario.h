#ifndef RUBATO_TESTS_SIMULATION_SCENARIO_H_
#define RUBATO_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/job_config.pb.h"

namespace rubato::simulation {

struct Rules {
  v1::Mode mode = v1::SYNC;
  int64_t staleness_bound = 0;
  uint32_t quorum = 0;
};

// A fault that is injected into a task, or an event of it, at a time since the start.
struct Fault {
  enum class Kind {
    kSwitchMode,
    // The worker's process dies.
    kCrashWorker,
    // A worker of this index starts, in place of the one before if there is one.
    kStartWorker,
    // The worker says and hears nothing for `length`, perhaps longer than its lease.
    kFreezeWorker,
    // The coordinator dies before its next action but `step`, counted from the next decision if `at_decision`, and is
    // started again after `length`.
    kCrashCoordinator,
    // The stream between worker and server breaks: everything in flight is lost.
    kBreakStream,
    // The server's process dies, and is started again after `length`, or never if that is infinite.
    kCrashServer,
    // The server says and hears nothing for `length`, perhaps longer than its lease.
    kFreezeServer,
    // The coordinator says and hears nothing for `length`; `replaced`: another one is started meanwhile.
    kFreezeCoordinator,
    // The coordinator's disk is full for `length`.
    kFillDisk,
    // The operator asks for a checkpoint.
    kRequestCheckpoint,
  };
  Kind kind;
  absl::Duration at;
  uint32_t worker = 0;
  uint32_t server = 0;
  absl::Duration length = absl::ZeroDuration();
  uint32_t step = 0;
  bool at_decision = false;
  bool replaced = false;
  Rules rules = {};
};

// Everything that a seed decides but single messages.
struct Scenario {
  uint64_t seed = 0;
  uint32_t servers = 1;
  uint32_t partitions = 1;  // Per server.
  uint32_t workers = 1;     // Expected at the start.
  uint32_t chunks = 2;      // Of tensors; at least 2.
  uint32_t shards = 0;      // Of a table, and more chunks; 0: there is no table.
  // How its rows are updated.
  v1::TableConfig::Algorithm rows_by = v1::TableConfig::SGD;
  bool rows_in_bf16 = false;
  // Keys have a row from this push on.
  uint32_t rows_admit_after = 1;
  // Rows go that had no update for so many steps; 0: none do.
  uint32_t rows_expire_after = 0;
  // And the oldest, where there are more than one 256th of this in a 256th of the hashes; 0: none do.
  uint64_t most_rows = 0;
  int steps = 20;        // Each worker leaves when it has done as many, if the data is never used up.
  int64_t examples = 0;  // Of the data, which the job goes through once; 0: it is never used up.
  // The workers are clients: one of them assigns the initial weights, and some have no gradient of some chunks. `own`:
  // with data of their own, so that the job ends when the last one has left by itself.
  bool clients = false;
  bool own = false;
  // And each SYNC step gives them the mean of their gradients.
  bool mean = false;
  Rules start;

  // The network, until `heal_at`: probabilities per message; latency is drawn between 0 and twice its mean.
  double loss = 0;
  double duplication = 0;
  double straggling = 0;
  absl::Duration latency;
  absl::Duration straggler_latency;
  // Afterwards nothing is lost and nothing goes wrong.
  absl::Duration heal_at;

  absl::Duration timeout;
  absl::Duration lease;
  absl::Duration resend;
  // How long a rollback waits for those who are missing.
  absl::Duration server_grace;
  // Checkpoints: after so many steps, after so long (0: never), how many are kept, and the mean time that a task takes
  // to write its part.
  int64_t cut_steps = 0;
  absl::Duration cut_interval;
  uint32_t keep_cuts = 2;
  absl::Duration writing;
  // How long a launcher takes to see that a server has ended, and to start it again.
  absl::Duration launcher;
  // Whether servers know from a request that it is of another line of history. If they do not, the incarnations that
  // are gone must be enough.
  bool fingerprints = true;
  // Whether the coordinator knows that its machine was started again. If it does not, it goes on without the leases
  // that it has lost, which no real job does; but the other records have to be enough for everything else.
  bool names_boots = true;
  // Mean time that a layer takes forward or backward, by worker index.
  std::vector<absl::Duration> compute;
  std::vector<Fault> faults;
};

// Worker indices are under this.
inline constexpr uint32_t kMostWorkers = 6;

Scenario DrawScenario(uint64_t seed);

// One line for people.
std::string Describe(const Scenario& scenario);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SCENARIO_H_
