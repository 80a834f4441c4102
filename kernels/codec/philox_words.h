#ifndef RUBATO_KERNELS_CODEC_PHILOX_WORDS_H_
#define RUBATO_KERNELS_CODEC_PHILOX_WORDS_H_

#include <cstdint>

#include "kernels/optimizer/isa.h"

namespace rubato::codec {

// The four words of 32 consecutive Philox blocks, words[w][l] = PhiloxBlock(seed, stream, 32 * group + l)[w]
// (common/random.h). Aligned for the widest vectors.
struct alignas(64) PhiloxWords {
  uint32_t words[4][32];
};

// The function that fills `out` on an instruction set, which this processor supports. All fill in the same bits.
using PhiloxWordsFunction = void (*)(uint64_t seed, uint64_t stream, uint64_t group, PhiloxWords& out);
PhiloxWordsFunction PhiloxWordsOn(Isa isa);

}  // namespace rubato::codec

#endif  // RUBATO_KERNELS_CODEC_PHILOX_WORDS_H_
