#ifndef RUBATO_BENCH_PUSH_PULL_RUBATO_STEPS_H_
#define RUBATO_BENCH_PUSH_PULL_RUBATO_STEPS_H_

#include <memory>

#include "bench/push_pull/rubato_server.h"
#include "bench/push_pull/subject.h"

namespace rubato::bench {

// A worker's PsClient, driven as by a trainer whose computation takes no time: pushes in backward order, waits in
// forward order.
absl::StatusOr<std::unique_ptr<Client>> ConnectRubatoSteps(const Setup& setup, RubatoJob job);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_RUBATO_STEPS_H_
