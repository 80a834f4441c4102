#ifndef RUBATO_WORKER_DATA_BYTE_PAIRS_BYTE_PAIR_LEARNER_H_
#define RUBATO_WORKER_DATA_BYTE_PAIRS_BYTE_PAIR_LEARNER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/byte_pairs/byte_pairs.h"

namespace rubato::worker {

// Learns BytePairs from text: puts the two tokens together that follow each other most often, again and again, and of
// several with the same count those with the lowest numbers, so that the same text gives the same pairs on every
// machine. Memory grows with the number of different pieces. Not thread-safe.
//
//   BytePairLearner learner(/*lower_case=*/false);
//   for (each text) learner.Add(text);
//   RUBATO_ASSIGN_OR_RETURN(const BytePairs pairs, learner.Learn(4096));
class BytePairLearner {
 public:
  explicit BytePairLearner(bool lower_case) : lower_case_(lower_case) {}

  // A text of its own: no pair goes across its ends.
  void Add(absl::string_view text);

  // Of all text that was added.
  int64_t bytes() const { return bytes_; }
  // Of how many tokens it consists.
  int64_t TokensOf(const BytePairs& pairs) const;

  // Up to so many tokens, from 256: fewer if no two tokens follow each other twice any more. InvalidArgument: more than
  // BytePairs::kMaxTokens are asked for, and there are as many.
  absl::StatusOr<BytePairs> Learn(uint32_t tokens) const;

 private:
  const bool lower_case_;
  int64_t bytes_ = 0;
  // How often each is in the text.
  absl::flat_hash_map<std::string, int64_t> pieces_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_BYTE_PAIRS_BYTE_PAIR_LEARNER_H_
