#include "client/library/table_rows.h"

#include <cstring>
#include <utility>

namespace rubato::client {

BodyWriter TableRows::RowsOf(const KeyIndex& keys, uint64_t examples) const {
  BodyWriter body;
  body.Put(RowsBody{.table = table_, .keys = keys.keys().size(), .examples = examples});
  body.Array(keys.keys().data(), keys.keys().size());
  return body;
}

void TableRows::Ask(const uint64_t* keys, size_t count) {
  next_.Clear();
  for (size_t i = 0; i < count; ++i) next_.Add(keys[i]);
}

bool TableRows::Begin(BodyReader* reader) {
  Forget();
  uint64_t there = 0;
  if (!reader->Get(&there)) return false;
  if (there > 0) {
    if (there != next_.keys().size() || !reader->Array(there * dimension_, &rows_)) return false;
    std::swap(current_, next_);
  }
  next_.Clear();
  return true;
}

void TableRows::Forget() { current_.Clear(); }

size_t TableRows::FindMissing(const uint64_t* keys, size_t count) {
  missing_.Clear();
  for (size_t i = 0; i < count; ++i) {
    if (current_.Find(keys[i]) == KeyIndex::kNone) missing_.Add(keys[i]);
  }
  return missing_.keys().size();
}

bool TableRows::Copy(const uint64_t* keys, size_t count, const std::string& answer, float* out) const {
  if (answer.size() != missing_.keys().size() * row_bytes()) return false;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t here = current_.Find(keys[i]);
    const char* const from = here != KeyIndex::kNone ? reinterpret_cast<const char*>(rows_.data()) + here * row_bytes()
                                                     : answer.data() + missing_.Find(keys[i]) * row_bytes();
    std::memcpy(out + i * dimension_, from, row_bytes());
  }
  return true;
}

size_t TableRows::AddUp(const uint64_t* keys, size_t count, const float* gradients) {
  pushed_.Clear();
  sums_.clear();
  for (size_t i = 0; i < count; ++i) {
    const float* const gradient = gradients + i * dimension_;
    const size_t known = pushed_.keys().size();
    const uint32_t number = pushed_.Add(keys[i]);
    if (number == known) {
      sums_.insert(sums_.end(), gradient, gradient + dimension_);
      continue;
    }
    float* const sum = sums_.data() + number * dimension_;
    for (size_t k = 0; k < dimension_; ++k) sum[k] += gradient[k];
  }
  return pushed_.keys().size();
}

std::string TableRows::pushed_body(uint64_t examples) const {
  return RowsOf(pushed_, examples).Array(sums_.data(), sums_.size()).body();
}

}  // namespace rubato::client
