#include "kernels/codec/philox_words.h"

#include <gtest/gtest.h>

#include "common/random.h"

namespace rubato::codec {
namespace {

TEST(PhiloxWordsTest, AreThoseOfPhiloxOnEveryInstructionSet) {
  constexpr uint64_t kSeed = 0x0123456789abcdef, kStream = 0xfedcba9876543210;
  // The last groups' block numbers need more than 32 bits.
  for (uint64_t group :
       {uint64_t{0}, uint64_t{1}, uint64_t{77}, (uint64_t{1} << 27) - 1, uint64_t{1} << 27, (uint64_t{1} << 40) + 5}) {
    for (Isa isa : kAllIsas) {
      if (!Supports(isa)) continue;
      PhiloxWords words;
      PhiloxWordsOn(isa)(kSeed, kStream, group, words);
      for (int block = 0; block < 32; ++block) {
        const auto expected = PhiloxBlock(kSeed, kStream, group * 32 + block);
        for (int word = 0; word < 4; ++word) {
          ASSERT_EQ(words.words[word][block], expected[word]) << IsaName(isa) << " " << group << " " << block;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rubato::codec
