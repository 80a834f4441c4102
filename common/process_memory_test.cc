#include "common/process_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace rubato {
namespace {

TEST(ProcessMemoryTest, GrowsWithWhatIsUsed) {
  const int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  const std::vector<char> used(size_t{64} << 20, 1);
  EXPECT_GE(ResidentBytes(), before + (int64_t{48} << 20)) << used.size();
}

}  // namespace
}  // namespace rubato
