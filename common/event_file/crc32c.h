#ifndef RUBATO_COMMON_EVENT_FILE_CRC32C_H_
#define RUBATO_COMMON_EVENT_FILE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rubato {

// CRC-32C (Castagnoli's polynomial, reflected, as in iSCSI, RFC 3720). For a few kilobytes a second: one table, one
// byte at a time. Pure.
uint32_t Crc32c(absl::string_view bytes);

// How TFRecord files store it, so that a CRC of bytes that contain a CRC is none of a special value. Pure.
uint32_t MaskedCrc32c(absl::string_view bytes);

}  // namespace rubato

#endif  // RUBATO_COMMON_EVENT_FILE_CRC32C_H_
