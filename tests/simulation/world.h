#ifndef RUBATO_TESTS_SIMULATION_WORLD_H_
#define RUBATO_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/model_spec.h"
#include "common/random.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "proto/update_log.pb.h"
#include "tests/simulation/checkpoint_directory.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/incarnations.h"
#include "tests/simulation/job.h"
#include "tests/simulation/network.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/rollback_watch.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/trace.h"

namespace rubato::simulation {

// What all actors of one run share.
struct World {
  World(const Scenario& drawn, size_t keep_trace)
      : scenario(drawn),
        config(MakeJobConfig(drawn)),
        model(MakeModelSpec(config)),
        trace(&queue, keep_trace),
        network(&queue, &scenario),
        random(drawn.seed, StreamId("actors")),
        oracle({.examples = TrainExamples(drawn), .of_shard = kShardExamples}, &coverage),
        rollback(&coverage) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Scenario scenario;
  const v1::JobConfig config;
  const ModelSpec model;
  EventQueue queue;
  Trace trace;
  Network network;
  Random random;
  Coverage coverage;
  Oracle oracle;
  RollbackWatch rollback;
  CheckpointDirectory checkpoints;
  // Sees every record of every update log; `job` is the fingerprint of the job, which tells lines of history apart.
  std::function<void(uint64_t job, uint32_t partition, const v1::UpdateLogRecord&)> on_record;
  // Starts a task of this role and index after a while, in place of one that has ended or gave up.
  std::function<void(const v1::TaskId& ended, absl::Duration delay)> start_again;
  // The job as servers were told last; without chunks until it has started.
  v1::JobDescription job;
  // A client's job: the lines of history in which somebody trains, the servers that have written the first checkpoint
  // of a line, and whether all of some line have.
  std::set<uint64_t> training;
  std::map<uint64_t, std::set<uint32_t>> first_written;
  bool weights_written = false;
  // Whether the job awaits its initial weights, or plan: whoever launches its workers starts those again that end.
  bool assigning() const { return scenario.clients && !training.contains(job.fingerprint()); }
  Incarnations incarnations;
  uint64_t last_token = 0;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_WORLD_H_
