#include "common/event_file/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

// The examples of RFC 3720, appendix B.4.
TEST(Crc32cTest, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, MasksByRotatingAndAdding) {
  EXPECT_EQ(MaskedCrc32c(""), 0xa282ead8u);
  EXPECT_EQ(MaskedCrc32c("123456789"), ((0xe3069283u >> 15) | (0xe3069283u << 17)) + 0xa282ead8u);
}

}  // namespace
}  // namespace rubato
