#ifndef RUBATO_COMMON_TASK_H_
#define RUBATO_COMMON_TASK_H_

#include <optional>
#include <string>

#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// The version of the protocol that tasks speak with each other; tasks of different versions refuse each other.
inline constexpr uint32_t kProtocolVersion = 1;

// "worker 1", as it appears in every message to a person.
std::string TaskName(const v1::TaskId& task);
std::string TaskName(v1::TaskId::Role role, uint32_t index);

// Same role, index and incarnation.
bool SameTask(const v1::TaskId& a, const v1::TaskId& b);

// "SYNC", "SSP(4)", "ASYNC".
std::string ModeName(v1::Mode mode, int64_t staleness_bound);

// The plan's factor on the learning rate.
double LearningRateScale(const v1::Plan& plan);

// The optimizer's momentum under the plan, if it is another one than the config's.
std::optional<double> MomentumOf(const v1::Plan& plan);

// What every task says of itself when it registers: protocol version, host and process.
v1::Register DescribeProcess();

}  // namespace rubato

#endif  // RUBATO_COMMON_TASK_H_
