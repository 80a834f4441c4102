#ifndef RUBATO_TESTS_SIMULATION_SIMULATION_H_
#define RUBATO_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proto/update_log.pb.h"
#include "tests/simulation/coverage.h"

namespace rubato::simulation {

// One run: a job with faults, drawn from `seed` alone, judged after every event.
struct RunOptions {
  uint64_t seed = 1;
  // Lines of the trace that are kept; 0 for none.
  size_t keep_trace = 0;
  // If given, is called with every record of every partition's update log; partitions are numbered over all servers.
  // `job` tells lines of history apart: it is another one after the job went back to a checkpoint.
  std::function<void(uint64_t job, uint32_t partition, const v1::UpdateLogRecord&)> on_record = {};
};

struct RunResult {
  // One line that tells what was drawn.
  std::string scenario;
  int64_t events = 0;
  // How far the job came: steps that somebody has begun, and plans.
  int64_t steps = 0;
  int64_t plans = 0;
  Coverage coverage;
  // Which invariant was broken and how, with who waited for whom if a wait did not end; empty when none was.
  std::string violation;
  // The last lines of the trace.
  std::vector<std::string> trace;
};

// Drives the real rules of servers, workers and coordinator through modelled networks, computations and crashes in
// virtual time. Deterministic; keeps no state between calls; may be called from several threads.
RunResult RunOnce(const RunOptions& options);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIMULATION_H_
