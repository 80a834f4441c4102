#ifndef RUBATO_COMMON_LIMITS_PEER_COUNTS_H_
#define RUBATO_COMMON_LIMITS_PEER_COUNTS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"
#include "common/security/identity.h"

namespace rubato {

// How many of something each peer has open, up to a bound: so that one cannot take what all need. Thread-safe; places
// may outlive it.
//
//   PeerCounts streams({.what = "streams", .per_task = 20, .per_host = 400});
//   RUBATO_ASSIGN_OR_RETURN(PeerCounts::Place place, streams.Take(identity, context.peer()));
class PeerCounts {
 public:
  struct Options {
    // In the plural, for the refusal.
    std::string what;
    // Of a task that has proved which one it is, and of everybody else on one host.
    size_t per_task = 0;
    size_t per_host = 0;
  };
  // Held as long as it is open.
  using Place = std::shared_ptr<const void>;

  explicit PeerCounts(Options options);

  // ResourceExhausted: the peer has as many as it may have; the message says who, and how many.
  absl::StatusOr<Place> Take(const std::optional<Identity>& identity, absl::string_view peer);

 private:
  struct Counts {
    Mutex mu;
    std::map<std::string, size_t> open ABSL_GUARDED_BY(mu);
  };

  const Options options_;
  const std::shared_ptr<Counts> counts_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_PEER_COUNTS_H_
