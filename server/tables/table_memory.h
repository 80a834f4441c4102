#ifndef RUBATO_SERVER_TABLES_TABLE_MEMORY_H_
#define RUBATO_SERVER_TABLES_TABLE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato::server {

// One range of addresses that the arrays of a table are cut from, so that 32 bits say where one lies. The system gives
// it memory as it is used, in large pages if it has them: a lookup goes to a few cache lines anywhere in it, and with
// small pages it would have to look for each of their pages, too. Not thread-safe.
class TableMemory {
 public:
  // Arrays begin at, and take, multiples of a cache line.
  static constexpr size_t kLine = 64;

  // `bytes` of addresses, of which none has memory yet; at most 2^32 lines. ResourceExhausted if there are no such
  // addresses, as under `ulimit -v`.
  static absl::StatusOr<std::unique_ptr<TableMemory>> Create(size_t bytes);
  ~TableMemory();
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;

  // So many lines, of any contents; where they begin, never 0. That the range has room for them is the caller's to see
  // to.
  uint32_t Take(size_t lines);
  // What Take gave.
  void Return(uint32_t at, size_t lines);

  struct Lines {
    uint32_t at;
    size_t count;
  };
  // At least `fewest` lines of what was returned, and no more than `most`; otherwise `fresh` that are new.
  Lines TakeReturned(size_t fewest, size_t most, size_t fresh);

  char* At(uint32_t line) const { return base_ + kLine * line; }
  // Used, and returned and not used again.
  int64_t bytes() const { return static_cast<int64_t>(kLine * next_); }

 private:
  TableMemory(char* base, size_t bytes) : base_(base), range_bytes_(bytes) {}

  char* const base_;
  const size_t range_bytes_;
  // The first line is nobody's.
  size_t next_ = 1;
  // What was returned, by the number of lines.
  std::map<size_t, std::vector<uint32_t>> free_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_TABLE_MEMORY_H_
