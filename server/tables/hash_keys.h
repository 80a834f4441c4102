#ifndef RUBATO_SERVER_TABLES_HASH_KEYS_H_
#define RUBATO_SERVER_TABLES_HASH_KEYS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/key_hash.h"
#include "kernels/optimizer/isa.h"

namespace rubato::server {

// Writes what KeyHash::Of says of each of the keys. `hashes` may be where the keys are; otherwise they do not overlap.
void HashKeys(const KeyHash& hash, absl::Span<const uint64_t> keys, uint64_t* hashes);

// On a given instruction set, which this processor supports; for tests.
void HashKeysOn(Isa isa, const KeyHash& hash, absl::Span<const uint64_t> keys, uint64_t* hashes);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_HASH_KEYS_H_
