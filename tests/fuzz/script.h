#ifndef RUBATO_TESTS_FUZZ_SCRIPT_H_
#define RUBATO_TESTS_FUZZ_SCRIPT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rubato {

// An input that is read from its beginning, as a list of things to do. Gives zeros when nothing is left.
class Script {
 public:
  explicit Script(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  uint8_t Byte() { return Number<uint8_t>(); }
  size_t Below(size_t bound) { return Byte() % bound; }
  template <typename T>
  T Number() {
    T value = {};
    const size_t size = std::min(sizeof(T), rest_.size());
    std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return value;
  }
  // A small number, or, now and then, any.
  template <typename T>
  T Size() {
    const uint8_t first = Byte();
    return first < 0xf0 ? static_cast<T>(first) : Number<T>();
  }
  // Of up to 255 bytes.
  std::string Text() {
    const std::string text(rest_.substr(0, Byte()));
    rest_.remove_prefix(std::min(text.size(), rest_.size()));
    return text;
  }

 private:
  std::string_view rest_;
};

}  // namespace rubato

#endif  // RUBATO_TESTS_FUZZ_SCRIPT_H_
