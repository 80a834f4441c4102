#include "tests/simulation/chunk_state.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rubato::simulation {
namespace {

std::string RowText(const Rows& rows, uint64_t key) {
  const auto row = rows.find(key);
  return row == rows.end() ? "none" : absl::StrJoin(row->second, ",");
}

std::string CountsText(const PushCounts& counts) {
  return absl::StrJoin(counts, "; ", [](std::string* text, const PushCounts::value_type& part) {
    absl::StrAppend(text, part.first, ": ", absl::StrJoin(part.second, ","));
  });
}

}  // namespace

std::string Difference(const ChunkState& state, const ChunkState& due) {
  std::string text = absl::StrCat("version ", state.version, " of ", state.pushes.size(), " pushes; due are ",
                                  due.version, " of ", due.pushes.size());
  Rows all = state.rows;
  all.insert(due.rows.begin(), due.rows.end());
  for (const auto& [key, row] : all) {
    const std::string is = RowText(state.rows, key), wanted = RowText(due.rows, key);
    if (is != wanted) return absl::StrCat(text, "; the row of key ", key, " is ", is, " where ", wanted, " is due");
  }
  if (state.counts != due.counts) {
    absl::StrAppend(&text, "; pushes are counted as ", CountsText(state.counts), " where ", CountsText(due.counts),
                    " is due");
  }
  return text;
}

}  // namespace rubato::simulation
