#ifndef RUBATO_COMMON_LIMITS_REFUSAL_LOG_H_
#define RUBATO_COMMON_LIMITS_REFUSAL_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"

namespace rubato {

// Says in the log who is refused what: of each peer and kind once, and after a pause again, with how many there were
// meanwhile. So whoever goes on asking fills neither the log nor memory. Thread-safe.
//
//   refusals.Note("worker 1", "streams", "worker 1 has 20 streams open already; no more at the same time");
class RefusalLog {
 public:
  // For what comes again from the same peer.
  static constexpr absl::Duration kPause = absl::Minutes(10);
  // Peers and kinds that are remembered; those beyond are told of together, once a pause.
  static constexpr size_t kMost = 256;
  // Of a reason; the rest of a longer one is left out.
  static constexpr size_t kReasonBytes = 400;

  // Both outlive the log.
  RefusalLog(const Clock* clock, Logger* log) : clock_(clock), log_(log) {}

  // `kind` is a word for what is refused. What is in `why` may come from the peer.
  void Note(absl::string_view peer, absl::string_view kind, absl::string_view why);

 private:
  struct Told {
    absl::Time when = absl::InfinitePast();
    // Refused and not told since.
    uint64_t since = 0;
  };

  // Null: there is no room.
  Told* Find(std::pair<std::string, std::string> key, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  Logger* const log_;
  Mutex mu_;
  std::map<std::pair<std::string, std::string>, Told> told_ ABSL_GUARDED_BY(mu_);
  Told others_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_REFUSAL_LOG_H_
