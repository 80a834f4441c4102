#include "kernels/cuda/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato::cuda {
namespace {

using ::testing::HasSubstr;

TEST(SharedLibraryTest, FindsFunctions) {
  auto library = SharedLibrary::Open("libm.so.6", "/nowhere");
  ASSERT_TRUE(library.ok()) << library.status();
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE((*library)->Find("cos", &cosine).ok());
  EXPECT_EQ(cosine(0), 1);
  const absl::Status missing = (*library)->Find("no_such_function", &cosine);
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(missing.message(), "libm.so.6 has no no_such_function: another version is needed");
}

TEST(SharedLibraryTest, SaysWhatCannotBeLoaded) {
  auto library = SharedLibrary::Open("libno-such-library.so.1", "/nowhere");
  EXPECT_EQ(library.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(library.status().message()), HasSubstr("libno-such-library.so.1 cannot be loaded"));
  EXPECT_THAT(std::string(library.status().message()), HasSubstr("/nowhere/libno-such-library.so.1"));
}

}  // namespace
}  // namespace rubato::cuda
