#ifndef RUBATO_TESTS_SIMULATION_SIM_PUSH_H_
#define RUBATO_TESTS_SIMULATION_SIM_PUSH_H_

#include <cstdint>
#include <vector>

#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"
#include "tests/simulation/chunk_state.h"
#include "tests/simulation/scenario.h"

namespace rubato::simulation {

// What a push brings. It is decided by who pushes which step, so that it is the same when it is sent again.

// Of a client's job: the last chunk is the bias, in a group of its own.
inline constexpr uint32_t kGroups = 2;
inline uint32_t GroupOf(uint32_t chunk, uint32_t chunks) { return chunk + 1 == chunks ? 1 : 0; }

// SGD, or MEAN.
v1::OptimizerConfig MakeOptimizer(const Scenario& scenario);

// Stands for a chunk's gradient: -1 to 1.
double GradientOf(const PushId& push, uint32_t chunk);

// Of the job's table, if there is one.
inline constexpr int64_t kKeysPerExample = 3;
inline constexpr int64_t kRowDimension = 2;
// As few as there may be: 64 for each of a table's 256 parts.
inline constexpr uint64_t kAdmissionCounters = uint64_t{1} << 14;
v1::TableConfig MakeTable(const Scenario& scenario);

// A key of one of a push's examples: a few are drawn again and again and most of them seldom, 0 and the last one among
// them.
uint64_t KeyOf(const PushId& push, int64_t example, int64_t place);
// An element of the gradient of its row there: -1 to 1.
float RowGradientOf(const PushId& push, int64_t example, int64_t place, int64_t element);
// The keys that a task reads for a step, in any order, of two examples. Some of them nobody pushes.
std::vector<uint64_t> KeysRead(const PushId& reader);

// The hyperparameters that a client pushes with. They change with the step, mostly for all workers alike; some pushes
// say something else, or nothing of a group.
google::protobuf::RepeatedPtrField<v1::GroupHyperparameters> HyperparametersOf(const PushId& push);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_PUSH_H_
