#include "bench/gpu/operation_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "kernels/cpu/cpu_backend.h"

namespace rubato::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr TimingOptions kOnce = {.rounds = 1, .round_seconds = 0, .warm_up_seconds = 0};
constexpr DeviceRates kRates = {.flops_per_s = 1e9, .bytes_per_s = 1e9};

OperationCase Succeeds(const std::string& name) {
  return {name, {.bytes = 1}, [] { return absl::OkStatus(); }};
}

TEST(OperationCasesTest, WhatFailsDoesNotEndWhatFollows) {
  const auto backend = *CreateCpuBackend({});
  const OperationCase broken = {"broken", {.bytes = 1}, [] { return absl::InternalError("refused"); }};
  std::ostringstream out, errors;
  CaseReport report(&out, &errors);
  TimeGroups(*backend,
             {{"too large", [] { return absl::ResourceExhaustedError("no memory"); }},
              {"group",
               [&] {
                 return std::vector<OperationCase>{Succeeds("first"), broken, Succeeds("last")};
               }}},
             {}, kRates, kOnce, &report);
  // Before the table.
  EXPECT_THAT(out.str(), HasSubstr("{\"name\":\"first\",\"microseconds\":"));
  EXPECT_THAT(out.str(), HasSubstr("{\"name\":\"last\",\"microseconds\":"));
  EXPECT_EQ(report.Finish(), 1);
  EXPECT_THAT(errors.str(), HasSubstr("FAILED: too large: RESOURCE_EXHAUSTED: no memory"));
  EXPECT_THAT(errors.str(), HasSubstr("FAILED: broken: INTERNAL: refused"));
  EXPECT_THAT(errors.str(), HasSubstr("2 failed, 2 did not"));
}

TEST(OperationCasesTest, OnlyTheCasesThatAreAskedFor) {
  const auto backend = *CreateCpuBackend({});
  std::ostringstream out, errors;
  CaseReport report(&out, &errors);
  TimeGroups(*backend,
             {{"group",
               [&] {
                 return std::vector<OperationCase>{Succeeds("product 64"), Succeeds("relu")};
               }}},
             {"product", "attention"}, kRates, kOnce, &report);
  EXPECT_THAT(out.str(), HasSubstr("product 64"));
  EXPECT_THAT(out.str(), Not(HasSubstr("relu")));
  EXPECT_EQ(report.Finish(), 0);
}

}  // namespace
}  // namespace rubato::bench
