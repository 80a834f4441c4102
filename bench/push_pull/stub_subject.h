#ifndef RUBATO_BENCH_PUSH_PULL_STUB_SUBJECT_H_
#define RUBATO_BENCH_PUSH_PULL_STUB_SUBJECT_H_

#include <memory>
#include <string>

#include "bench/push_pull/subject.h"

namespace rubato::bench {

// What one gets from gRPC without any effort: the generated synchronous stub and service of ParameterServer.Exchange
// with default settings, but for the bound on a message's size, which 4 MiB would pass. With several in flight the
// client reads on a thread of its own; otherwise both sides would wait for each other in Write.
absl::Status ServeStub(const Setup& setup, const Ready& ready);
absl::StatusOr<std::unique_ptr<Client>> ConnectStub(const Setup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_STUB_SUBJECT_H_
