#ifndef RUBATO_COMMON_FILE_DESCRIPTOR_H_
#define RUBATO_COMMON_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace rubato {

// Owns an open file descriptor, or none (-1). Not thread-safe.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  // Takes over `descriptor`; a negative one is none, so that a failed system call's result can be wrapped at once.
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor < 0 ? -1 : descriptor) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }

  bool open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  // Does nothing when there is none.
  void Close() {
    if (open()) close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_ = -1;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_FILE_DESCRIPTOR_H_
