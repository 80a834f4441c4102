#ifndef RUBATO_COMMON_MODEL_SPEC_TESTING_SPEC_OF_TEXT_H_
#define RUBATO_COMMON_MODEL_SPEC_TESTING_SPEC_OF_TEXT_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "common/model_spec.h"

namespace rubato {

// Of a ModelConfig as text.
inline absl::StatusOr<ModelSpec> Build(const std::string& text) {
  v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return BuildModelSpec(config);
}

// What is wrong with a model of these layers; "OK": nothing.
inline std::string ErrorOf(const std::string& text) {
  absl::StatusOr<ModelSpec> spec = Build(text + " loss: MEAN_SQUARED_ERROR");
  if (spec.ok()) return "OK";
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_TESTING_SPEC_OF_TEXT_H_
