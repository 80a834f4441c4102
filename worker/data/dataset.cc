#include "worker/data/dataset.h"

#include "absl/strings/str_cat.h"

namespace rubato::worker {

absl::Status Dataset::Read(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                           uint64_t* keys, uint32_t* key_counts, float* key_weights) const {
  for (int64_t i = 0; i < n; ++i) {
    if (indices[i] < 0 || indices[i] >= size()) {
      return absl::OutOfRangeError(absl::StrCat("example ", indices[i], "; allowed: 0 to ", size() - 1));
    }
  }
  if (properties_.has_key_weights) {
    return ReadWeightedExamples(indices, n, inputs, classes, targets, keys, key_counts, key_weights);
  }
  return ReadExamples(indices, n, inputs, classes, targets, keys, key_counts);
}

absl::Status Dataset::ReadWeightedExamples(const int64_t*, int64_t, float*, int32_t*, float*, uint64_t*, uint32_t*,
                                           float*) const {
  return absl::UnimplementedError("the data set's keys have weights, which its reader does not read");
}

}  // namespace rubato::worker
