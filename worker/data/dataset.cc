#include "worker/data/dataset.h"

#include "absl/strings/str_cat.h"

namespace rubato::worker {

absl::Status Dataset::Read(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                           uint64_t* keys, uint32_t* key_counts) const {
  for (int64_t i = 0; i < n; ++i) {
    if (indices[i] < 0 || indices[i] >= size()) {
      return absl::OutOfRangeError(absl::StrCat("example ", indices[i], "; allowed: 0 to ", size() - 1));
    }
  }
  return ReadExamples(indices, n, inputs, classes, targets, keys, key_counts);
}

}  // namespace rubato::worker
