#include "cli/command/variant_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/fingerprint.h"
#include "common/config/load.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::JobConfig Job() {
  return *ParseJobConfig(R"(
      name: "job" seed: 1
      model { input_shape: 4 layers { linear { units: 2 } } loss: SOFTMAX_CROSS_ENTROPY }
      data { teacher { train_examples: 100 } }
      optimizer { algorithm: SGD learning_rate: 0.1 }
      consistency { mode: SYNC }
      training { batch_size: 10 epochs: 1 }
      cluster { workers: 4 servers: 1 })",
                         "job", {});
}

TEST(VariantChoiceTest, ReadsANameAndItsChanges) {
  const auto variants = ParseVariants({"quorum: consistency.policy=QUORUM; consistency.quorum_policy.share_min=0.5;",
                                       "half-rate:optimizer.learning_rate=0.05"},
                                      {"sync"}, "--variant");
  ASSERT_TRUE(variants.ok()) << variants.status();
  ASSERT_EQ(variants->size(), 2u);
  EXPECT_EQ(variants->at(0).name, "quorum");
  EXPECT_THAT(variants->at(0).overrides,
              ElementsAre("consistency.policy=QUORUM", "consistency.quorum_policy.share_min=0.5"));
  EXPECT_EQ(variants->at(1).name, "half-rate");
  const auto config = ConfigOfVariant(Job(), variants->at(0));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->consistency().quorum_policy().share_min(), 0.5);
  EXPECT_EQ(config->consistency().policy_pace().window_steps(), 50) << "defaults are filled in";
}

TEST(VariantChoiceTest, RefusesWhatIsNoVariant) {
  for (const char* text : {"", "name", "name:", "name: ;", ": a=b", "a b: c=d", "../x: c=d", "-x: c=d"}) {
    const auto variants = ParseVariants({text}, {}, "--variant");
    EXPECT_EQ(variants.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(variants.status().message()), HasSubstr("--variant: value \""));
  }
  EXPECT_EQ(ParseVariants({"a: b=c", "a: d=e"}, {}, "--variant").status().message(), "--variant: a is given twice");
  EXPECT_EQ(ParseVariants({"sync: b=c"}, {"sync"}, "--variant").status().message(), "--variant: sync is given twice");
}

TEST(VariantChoiceTest, AWrongChangeNamesItsVariant) {
  EXPECT_THAT(std::string(ConfigOfVariant(Job(), {"v", {"consistency.quorum=9"}}).status().message()),
              HasSubstr("variant v: consistency.quorum: value 9; allowed: 0 to cluster.workers, 4"));
  EXPECT_EQ(ConfigOfVariant(Job(), {"v", {"seed=7"}}).status().message(),
            "variant v: seed: is changed; allowed: the same for all that is compared");
}

}  // namespace
}  // namespace rubato
