#include "coordinator/rules/policies/parts/changes_memory.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

TEST(ChangesMemoryTest, TextAndBack) {
  const absl::StatusOr<ChangesMemory> memory = ChangesMemory::FromText(ChangesMemory{4, true}.ToText(), "QUORUM");
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->changes, 4u);
  EXPECT_TRUE(memory->given_up);
  EXPECT_EQ(ChangesMemory::FromText("", "QUORUM")->changes, 0u);
}

TEST(ChangesMemoryTest, OtherTextIsRefusedWithThePolicysName) {
  for (const char* text : {"x", "1", "1 2", "-1 0", "1 0 "}) {
    const absl::Status status = ChangesMemory::FromText(text, "DSSP").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message().substr(0, 26), "the memory of policy DSSP:") << text;
  }
}

}  // namespace
}  // namespace rubato::coordinator
