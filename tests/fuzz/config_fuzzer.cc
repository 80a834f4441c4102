// A job's text: what is accepted is a job whose model can be built, and says the same when it is printed and read
// again.
//
// Input: the text; lines "#set path=value" are overrides.
#include <google/protobuf/text_format.h>

#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/config/load.h"
#include "common/model_spec.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> overrides;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "#set ")) overrides.emplace_back(line);
  }
  const absl::StatusOr<v1::JobConfig> config = ParseJobConfig(text, "job.textproto", overrides);
  if (!config.ok()) {
    RUBATO_FUZZ_CHECK(absl::IsInvalidArgument(config.status()) && !config.status().message().empty(), config.status());
    return 0;
  }
  RUBATO_FUZZ_CHECK(BuildModelSpec(config->model()).ok(), "a model that cannot be built was accepted");
  std::string printed;
  RUBATO_FUZZ_CHECK(google::protobuf::TextFormat::PrintToString(*config, &printed), "not printable");
  const absl::StatusOr<v1::JobConfig> again = ParseJobConfig(printed, "printed", {});
  RUBATO_FUZZ_CHECK(again.ok(), again.status());
  RUBATO_FUZZ_CHECK(again->SerializeAsString() == config->SerializeAsString(), printed);
  return 0;
}
