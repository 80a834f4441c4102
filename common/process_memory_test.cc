#include "common/process_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace rubato {
namespace {

TEST(ProcessMemoryTest, GrowsWithWhatIsUsed) {
  const int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  std::vector<char> used(size_t{64} << 20, 1);
  // Or the compiler may do without memory that nobody reads.
  volatile char* bytes = used.data();
  bytes[0] = 2;
  EXPECT_GE(ResidentBytes(), before + (int64_t{48} << 20)) << int{bytes[used.size() - 1]};
}

}  // namespace
}  // namespace rubato
