#ifndef RUBATO_COMMON_SHARED_MEMORY_REGION_H_
#define RUBATO_COMMON_SHARED_MEMORY_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace rubato {

// Memory without a name in any file system (memfd_create) that one process writes and others map read-only. It goes
// away with the last process that has it mapped or open, however that process ends. The last owner unmaps it.
//
// The object itself is immutable and thread-safe. Access to the bytes is for its users to order: across processes by a
// message that is sent after the write and received before the read.
//
//   RUBATO_ASSIGN_OR_RETURN(auto mine, SharedRegion::Create("server 0", 1 << 30));
//   ... mine->descriptor() goes to the peer ...
//   RUBATO_ASSIGN_OR_RETURN(auto theirs, SharedRegion::Map(std::move(received), 1 << 30));
class SharedRegion {
 public:
  // `bytes` zeros, writable through this object alone: the memory is sealed, so that nobody can resize it, which would
  // kill a reader with SIGBUS, nor write to it through a descriptor or a further mapping. (A kernel before 5.1 has no
  // seal for the latter; there the descriptor alone is read-only.) A page takes up memory once it is touched, also by
  // a reader. `name` is for people, in /proc/<pid>/maps. InvalidArgument: no bytes. ResourceExhausted: too many bytes
  // or open files. Another code if the system has no memfd or no /proc.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Create(const std::string& name, size_t bytes);

  // The same of memory that a process of this one's user has made with memfd_create, allowing seals, and mapped for
  // itself, such as a client's for its sidecar; it alone writes there too. InvalidArgument: it is no such memory, or
  // has another size than `bytes`.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Adopt(FileDescriptor memfd, size_t bytes);

  // Maps all of a peer's region, for reading, and closes the descriptor. InvalidArgument: it is no memfd, can be made
  // smaller by somebody, is empty, or is larger than `bytes_max`. ResourceExhausted: no room to map it.
  static absl::StatusOr<std::shared_ptr<const SharedRegion>> Map(FileDescriptor descriptor, size_t bytes_max);

  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // Starts at a page boundary.
  const uint8_t* data() const { return data_; }
  // Of a region made by Create, the only kind that is not const.
  uint8_t* mutable_data() { return data_; }
  size_t size() const { return size_; }
  // To be sent to peers, read-only; it stays the region's. -1 for a peer's region.
  int descriptor() const { return descriptor_.get(); }

  // The bytes [offset, offset + bytes), or null when not all of them are inside: for offsets that a peer sent. The peer
  // may change the bytes at any time, so what is checked is to be read once only.
  const uint8_t* Find(uint64_t offset, uint64_t bytes) const;

  // Where [data, data + bytes) is in the region; nullopt when it is not all inside.
  std::optional<uint64_t> OffsetOf(const void* data, size_t bytes) const;

 private:
  // Maps memory for writing, seals it, and opens it again for reading.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Take(const FileDescriptor& memfd, size_t bytes);

  SharedRegion(uint8_t* data, size_t size, FileDescriptor descriptor)
      : data_(data), size_(size), descriptor_(std::move(descriptor)) {}

  uint8_t* const data_;
  const size_t size_;
  const FileDescriptor descriptor_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_REGION_H_
