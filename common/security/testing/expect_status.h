#ifndef RUBATO_COMMON_SECURITY_TESTING_EXPECT_STATUS_H_
#define RUBATO_COMMON_SECURITY_TESTING_EXPECT_STATUS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rubato {

inline void ExpectStatus(const absl::Status& status, absl::StatusCode code, const std::string& part_of_message) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(part_of_message));
}

template <typename T>
void ExpectStatus(const absl::StatusOr<T>& result, absl::StatusCode code, const std::string& part_of_message) {
  ExpectStatus(result.status(), code, part_of_message);
}

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_TESTING_EXPECT_STATUS_H_
