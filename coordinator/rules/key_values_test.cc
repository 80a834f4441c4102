#include "coordinator/rules/key_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

using ::testing::HasSubstr;

v1::PutValueRequest Put(const std::string& key, const std::string& value) {
  v1::PutValueRequest request;
  request.set_key(key);
  request.set_value(value);
  return request;
}

absl::Status PutInto(KeyValues& values, const v1::PutValueRequest& request) {
  absl::StatusOr<v1::JournalValue> change = values.Check(request);
  if (change.ok()) values.Apply(*change);
  return change.status();
}

TEST(KeyValuesTest, KeepsTheLastValueUntilItIsErased) {
  KeyValues values;
  EXPECT_EQ(values.Find("a"), nullptr);
  ASSERT_TRUE(PutInto(values, Put("a", "1")).ok());
  ASSERT_TRUE(PutInto(values, Put("a", "")).ok());
  ASSERT_NE(values.Find("a"), nullptr);
  EXPECT_EQ(*values.Find("a"), "");
  v1::PutValueRequest erase = Put("a", "ignored");
  erase.set_erase(true);
  ASSERT_TRUE(PutInto(values, erase).ok());
  EXPECT_EQ(values.Find("a"), nullptr);
}

TEST(KeyValuesTest, RefusesKeysAndValuesThatAreTooLong) {
  KeyValues values;
  EXPECT_EQ(PutInto(values, Put("", "1")).message(), "key: 0 bytes; allowed: 1 to 256");
  EXPECT_TRUE(PutInto(values, Put(std::string(256, 'k'), "1")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PutInto(values, Put(std::string(257, 'k'), "1"))));
  EXPECT_TRUE(PutInto(values, Put("k", std::string(1 << 20, 'v'))).ok());
  EXPECT_EQ(PutInto(values, Put("k", std::string((1 << 20) + 1, 'v'))).message(),
            "value of k: 1048577 bytes; allowed: up to 1048576");
}

TEST(KeyValuesTest, AllTogetherAreBounded) {
  KeyValues values;
  const std::string mebibyte(1 << 20, 'v');
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(PutInto(values, Put(std::to_string(i), mebibyte)).ok());
  const absl::Status full = PutInto(values, Put("more", mebibyte));
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("with more the job's values would take"));
  EXPECT_TRUE(PutInto(values, Put("0", mebibyte)).ok());  // In the place of the old one.
  v1::PutValueRequest erase = Put("0", "");
  erase.set_erase(true);
  ASSERT_TRUE(PutInto(values, erase).ok());
  EXPECT_TRUE(PutInto(values, Put("more", mebibyte)).ok());
}

}  // namespace
}  // namespace rubato::coordinator
