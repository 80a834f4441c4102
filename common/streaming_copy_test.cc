#include "common/streaming_copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace rubato {
namespace {

void ExpectCopiesThoseBytesAndNoOthers(void (*copy)(void* to, const void* from, size_t bytes)) {
  std::vector<unsigned char> from(1000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 256);
  for (const size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 400}) {
    for (size_t to_offset = 0; to_offset < 66; ++to_offset) {
      for (const size_t from_offset : {0, 1, 17, 64}) {
        std::vector<unsigned char> to(600, 0xee), expected = to;
        for (size_t i = 0; i < bytes; ++i) expected[to_offset + i] = from[from_offset + i];
        copy(to.data() + to_offset, from.data() + from_offset, bytes);
        ASSERT_EQ(to, expected) << bytes << " bytes from " << from_offset << " to " << to_offset;
      }
    }
  }
}

TEST(StreamingCopyTest, ColdCopyTakesAnyAlignment) { ExpectCopiesThoseBytesAndNoOthers(ColdCopy); }

TEST(StreamingCopyTest, StreamingCopyTakesAnyAlignment) {
  ExpectCopiesThoseBytesAndNoOthers([](void* to, const void* from, size_t bytes) {
    StreamingCopy(to, from, bytes);
    FinishStreamingCopies();
  });
}

}  // namespace
}  // namespace rubato
