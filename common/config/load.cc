#include "common/config/load.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/config/awaited_model.h"
#include "common/config/config_text.h"
#include "common/config/data_paths.h"
#include "common/config/defaults.h"
#include "common/config/overrides.h"
#include "common/config/validate.h"
#include "common/model_spec.h"
#include "common/status.h"

namespace rubato {
namespace {

// Far above any job; a wrong path (a data file, a device) is refused before it fills the memory.
constexpr size_t kMaxConfigBytes = 16u << 20;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the job config ", path));
  std::string text;
  char buffer[16384];
  for (;;) {
    errno = 0;
    const size_t count = std::fread(buffer, 1, sizeof(buffer), file.get());
    text.append(buffer, count);
    if (std::ferror(file.get())) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the job config ", path));
    if (text.size() > kMaxConfigBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": more than ", kMaxConfigBytes, " bytes, no job config"));
    }
    if (count == 0) return text;
  }
}

// The names that BuildModelSpec gives, in their lists.
void NameLayers(google::protobuf::RepeatedPtrField<v1::LayerConfig>* layers) {
  for (int i = 0; i < layers->size(); ++i) {
    v1::LayerConfig& layer = *layers->Mutable(i);
    layer.set_name(LayerName(layer, i));
    if (layer.has_residual()) NameLayers(layer.mutable_residual()->mutable_layers());
  }
}

}  // namespace

absl::StatusOr<v1::JobConfig> ParseJobConfig(const std::string& text, absl::string_view name,
                                             const std::vector<std::string>& overrides, LoadOptions options) {
  v1::JobConfig config;
  RUBATO_RETURN_IF_ERROR(ParseText(text, name, &config));
  RUBATO_RETURN_IF_ERROR(ApplyOverrides(overrides, &config));
  if (AwaitsModel(config) && options.may_await_model) {
    FillDefaultsBesideModel(&config);
  } else {
    FillDefaults(&config);
  }
  RUBATO_RETURN_IF_ERROR(ValidateJobConfig(config));
  if (config.has_model()) NameLayers(config.mutable_model()->mutable_layers());
  return config;
}

absl::StatusOr<v1::JobConfig> LoadJobConfig(const std::string& path, const std::vector<std::string>& overrides,
                                            LoadOptions options) {
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, ParseJobConfig(text, path, overrides, options));
  ResolveReadPaths(std::filesystem::path(path).parent_path().string(), &config);
  return config;
}

}  // namespace rubato
