#ifndef RUBATO_TESTS_FUZZ_MEMORY_FILE_H_
#define RUBATO_TESTS_FUZZ_MEMORY_FILE_H_

#include <string>

namespace rubato {

// A file that exists in memory only, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Valid in this process.
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace rubato

#endif  // RUBATO_TESTS_FUZZ_MEMORY_FILE_H_
