#ifndef RUBATO_CLIENT_LIBRARY_TABLE_ROWS_H_
#define RUBATO_CLIENT_LIBRARY_TABLE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/library/key_index.h"
#include "client/link/frame.h"

namespace rubato::client {

// A client's rows of one table: those that came with the step, since it had asked for them in the one before, and the
// way from keys in any order, some of them several times, to keys that are there once, and back. Not thread-safe.
//
//   rows.Ask(keys, count);                // In a step: asked_body() to the sidecar.
//   if (!rows.Begin(&reader)) ...         // The next one begins: its answer has the rows.
//   rows.FindMissing(keys, count);        // What is not among them is asked for: missing_body().
//   if (!rows.Copy(keys, count, answer, out)) ...
//   rows.AddUp(keys, count, gradients);   // pushed_body() to the sidecar.
class TableRows {
 public:
  TableRows(uint32_t table, std::string name, size_t dimension)
      : table_(table), name_(std::move(name)), dimension_(dimension) {}

  const std::string& name() const { return name_; }
  size_t row_bytes() const { return dimension_ * sizeof(float); }

  // The next step needs these. Every call takes the place of the one before.
  void Ask(const uint64_t* keys, size_t count);
  // Different keys.
  size_t asked() const { return next_.keys().size(); }
  // Of kAskRows.
  std::string asked_body() const { return RowsOf(next_, 0).body(); }
  // A step begins, and `reader` comes to the table's part of the answer. False: it cannot be read.
  bool Begin(BodyReader* reader);
  // The rows that came with the step are old: the table was pushed.
  void Forget();

  // How many different ones of the keys have not come with the step.
  size_t FindMissing(const uint64_t* keys, size_t count);
  // Of kReadRows.
  std::string missing_body() const { return RowsOf(missing_, 0).body(); }
  // Writes the rows of keys for which FindMissing was called, with the answer to missing_body(). False: that is of
  // another size.
  bool Copy(const uint64_t* keys, size_t count, const std::string& answer, float* out) const;

  // Gradients of the same key are added up in their order. How many different keys there are.
  size_t AddUp(const uint64_t* keys, size_t count, const float* gradients);
  // Of kPushRows.
  std::string pushed_body(uint64_t examples) const;

 private:
  BodyWriter RowsOf(const KeyIndex& keys, uint64_t examples) const;

  const uint32_t table_;
  const std::string name_;
  const size_t dimension_;
  // Of the next step, and of this one with their rows.
  KeyIndex next_, current_;
  std::vector<float> rows_;
  KeyIndex missing_;
  // Of AddUp.
  KeyIndex pushed_;
  std::vector<float> sums_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_TABLE_ROWS_H_
