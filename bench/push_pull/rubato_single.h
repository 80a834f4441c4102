#ifndef RUBATO_BENCH_PUSH_PULL_RUBATO_SINGLE_H_
#define RUBATO_BENCH_PUSH_PULL_RUBATO_SINGLE_H_

#include <memory>

#include "bench/push_pull/rubato_server.h"
#include "bench/push_pull/subject.h"

namespace rubato::bench {

// One PushPull at a time through an ExchangeClient, chunk after chunk; the next one is sent when the answer arrives.
absl::StatusOr<std::unique_ptr<Client>> ConnectRubatoSingle(const Setup& setup, RubatoJob job);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_RUBATO_SINGLE_H_
