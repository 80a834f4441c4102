#include "server/tables/hash_keys.h"

namespace rubato::server {
namespace {

RUBATO_KERNEL_BODY void Run(KeyHash hash, const uint64_t* keys, int64_t count, uint64_t* hashes) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) hashes[i] = hash.Of(keys[i]);
}

void RunBaseline(KeyHash hash, const uint64_t* keys, int64_t count, uint64_t* hashes) {
  Run(hash, keys, count, hashes);
}
RUBATO_TARGET_AVX2 void RunAvx2(KeyHash hash, const uint64_t* keys, int64_t count, uint64_t* hashes) {
  Run(hash, keys, count, hashes);
}
RUBATO_TARGET_AVX512 void RunAvx512(KeyHash hash, const uint64_t* keys, int64_t count, uint64_t* hashes) {
  Run(hash, keys, count, hashes);
}

}  // namespace

void HashKeysOn(Isa isa, const KeyHash& hash, absl::Span<const uint64_t> keys, uint64_t* hashes) {
  // SSE has no product of 64 bits either.
  ForIsa(isa, RunBaseline, RunBaseline, RunAvx2, RunAvx512)(hash, keys.data(), static_cast<int64_t>(keys.size()),
                                                            hashes);
}

void HashKeys(const KeyHash& hash, absl::Span<const uint64_t> keys, uint64_t* hashes) {
  static const Isa best = BestIsa();
  HashKeysOn(best, hash, keys, hashes);
}

}  // namespace rubato::server
