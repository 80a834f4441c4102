#ifndef RUBATO_WORKER_DATA_COLUMN_KEYS_H_
#define RUBATO_WORKER_DATA_COLUMN_KEYS_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "worker/data/text_hash.h"

namespace rubato::worker {

// The key of an example's values in an entry of data.columns.keys, value by value. The same on every machine
// (docs/formats.md).
class ColumnKey {
 public:
  explicit ColumnKey(int entry) { hash_.Add(static_cast<uint64_t>(entry)); }

  // Its length stands before it, so that the values of a cross cannot be taken for others.
  void Add(absl::string_view value) {
    hash_.Add(uint64_t{value.size()});
    hash_.Add(value);
  }
  void AddBucket(int64_t number) {
    hash_.Add(uint64_t{1});
    hash_.Add(static_cast<uint64_t>(number));
  }

  uint64_t Finish() const { return hash_.Finish(); }

 private:
  TextHash hash_;
};

// Which of the buckets of this width a number is in: the multiple of the width that is not over it, divided by the
// width. Nothing: `field` is no finite number, or too large to say.
std::optional<int64_t> BucketOf(absl::string_view field, double width);

// Calls visit(word) for each run of letters and digits, in lower case. Bytes over 127, of which other letters consist
// in UTF-8, count as letters and stay as they are.
void ForEachWord(absl::string_view text, absl::FunctionRef<void(absl::string_view)> visit);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_COLUMN_KEYS_H_
