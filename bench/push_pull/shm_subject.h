#ifndef RUBATO_BENCH_PUSH_PULL_SHM_SUBJECT_H_
#define RUBATO_BENCH_PUSH_PULL_SHM_SUBJECT_H_

#include <memory>
#include <string>

#include "bench/push_pull/subject.h"

namespace rubato::bench {

// What memory can do on one host: gradients and weights lie in memory that both processes map. The server adds in
// place, the client copies the weights out, one thread a side; counters and futexes hand over.
absl::Status ServeShm(const Setup& setup, const Ready& ready);
absl::StatusOr<std::unique_ptr<Client>> ConnectShm(const Setup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_SHM_SUBJECT_H_
