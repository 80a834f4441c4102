#ifndef RUBATO_BENCH_PUSH_PULL_RUBATO_SUBJECT_H_
#define RUBATO_BENCH_PUSH_PULL_RUBATO_SUBJECT_H_

#include <memory>
#include <string>

#include "bench/push_pull/subject.h"

namespace rubato::bench {

// The real servers and clients. With several in flight, whole steps as a trainer makes them, which has as many messages
// in flight as the step has; with one, PushPulls sent one by one through the worker's transport, because a step with
// one message would stay in the cache.
absl::Status ServeRubato(const Setup& setup, const Ready& ready);
absl::StatusOr<std::unique_ptr<Client>> ConnectRubato(const Setup& setup, const std::string& address);

// The same steps with cluster.shared_memory on.
absl::Status ServeRubatoShm(const Setup& setup, const Ready& ready);
absl::StatusOr<std::unique_ptr<Client>> ConnectRubatoShm(const Setup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_RUBATO_SUBJECT_H_
