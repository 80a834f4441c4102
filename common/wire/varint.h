#ifndef RUBATO_COMMON_WIRE_VARINT_H_
#define RUBATO_COMMON_WIRE_VARINT_H_

#include <cstdint>
#include <string>

namespace rubato {

// Adds a number as protobuf writes it: seven bits a byte, the lowest first.
inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

}  // namespace rubato

#endif  // RUBATO_COMMON_WIRE_VARINT_H_
