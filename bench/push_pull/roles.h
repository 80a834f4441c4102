#ifndef RUBATO_BENCH_PUSH_PULL_ROLES_H_
#define RUBATO_BENCH_PUSH_PULL_ROLES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/push_pull/child.h"
#include "bench/push_pull/subject.h"

namespace rubato::bench {

// The server's and the client's process of a subject, and the conversation that a Pair has with them: each line that
// they write is "ready ...", "count <round trips> <nanoseconds>" or "error ...".
absl::Status PlayServer(const Subject& subject, const Setup& setup);
absl::Status PlayClient(const Subject& subject, const Setup& setup, const std::string& address);

// Both processes of a subject, from the outside. Not thread-safe.
class Pair {
 public:
  // `flags`: what makes this program's main see the same subject and setup.
  static absl::StatusOr<std::unique_ptr<Pair>> Start(const std::vector<std::string>& flags);

  absl::StatusOr<Count> Run(absl::Duration duration);
  absl::Status Verify();

 private:
  Pair(std::unique_ptr<Child> server, std::unique_ptr<Child> client)
      : server_(std::move(server)), client_(std::move(client)) {}

  const std::unique_ptr<Child> server_;
  const std::unique_ptr<Child> client_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_ROLES_H_
