#ifndef RUBATO_BENCH_PUSH_PULL_TCP_SUBJECT_H_
#define RUBATO_BENCH_PUSH_PULL_TCP_SUBJECT_H_

#include <memory>
#include <string>

#include "bench/push_pull/subject.h"

namespace rubato::bench {

// What sockets can do: one connection over loopback, payloads and nothing else on it, one thread a side.
absl::Status ServeTcp(const Setup& setup, const Ready& ready);
absl::StatusOr<std::unique_ptr<Client>> ConnectTcp(const Setup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_TCP_SUBJECT_H_
