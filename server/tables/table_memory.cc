#include "server/tables/table_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rubato::server {

absl::StatusOr<std::unique_ptr<TableMemory>> TableMemory::Create(size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no range of ", bytes, " bytes of addresses for a table: ", std::strerror(errno)));
  }
  // Where there are no large pages, small ones do.
  madvise(base, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<TableMemory>(new TableMemory(static_cast<char*>(base), bytes));
}

TableMemory::~TableMemory() { munmap(base_, range_bytes_); }

uint32_t TableMemory::Take(size_t lines) { return TakeReturned(lines, lines, lines).at; }

void TableMemory::Return(uint32_t at, size_t lines) { free_[lines].push_back(at); }

TableMemory::Lines TableMemory::TakeReturned(size_t fewest, size_t most, size_t fresh) {
  // The most that there are.
  auto free = free_.upper_bound(most);
  if (free == free_.begin() || (--free)->first < fewest) {
    const size_t at = next_;
    next_ += fresh;
    return {static_cast<uint32_t>(at), fresh};
  }
  const Lines lines = {free->second.back(), free->first};
  free->second.pop_back();
  if (free->second.empty()) free_.erase(free);
  return lines;
}

}  // namespace rubato::server
