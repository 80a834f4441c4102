#ifndef RUBATO_TESTS_FUZZ_FUZZ_TARGET_H_
#define RUBATO_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

// What libFuzzer and driver.cc call with one input after another.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process, which is how a fuzzer is told of a bug, when `condition` does not hold; `what` says more.
#define RUBATO_FUZZ_CHECK(condition, what)                                                     \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " #condition ": " << (what) << std::endl; \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)

namespace rubato {

// Takes settings off the end of an input, so that what is before them stays as it is in a file. Gives zeros when
// nothing is left.
class Trailer {
 public:
  Trailer(const uint8_t* data, size_t size) : data_(reinterpret_cast<const char*>(data)), size_(size) {}

  uint8_t TakeByte() { return size_ > 0 ? static_cast<uint8_t>(data_[--size_]) : 0; }
  uint32_t TakeWord() { return TakeByte() | uint32_t{TakeByte()} << 8; }
  // What has not been taken.
  std::string Rest() const { return std::string(data_, size_); }

 private:
  const char* data_;
  size_t size_;
};

}  // namespace rubato

#endif  // RUBATO_TESTS_FUZZ_FUZZ_TARGET_H_
