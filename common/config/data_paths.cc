#include "common/config/data_paths.h"

#include <google/protobuf/descriptor.h>

#include <filesystem>
#include <system_error>

namespace rubato {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void ChangeField(const FieldDescriptor* field, const std::function<void(std::string*)>& change, Message* message) {
  const auto* reflection = message->GetReflection();
  const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
  for (int i = 0; i < count; ++i) {
    std::string path = field->is_repeated() ? reflection->GetRepeatedString(*message, field, i)
                                            : reflection->GetString(*message, field);
    if (path.empty()) continue;
    change(&path);
    if (field->is_repeated()) {
      reflection->SetRepeatedString(message, field, i, path);
    } else {
      reflection->SetString(message, field, path);
    }
  }
}

void ChangeMessage(const std::function<void(std::string*)>& change, Message* message) {
  std::vector<const FieldDescriptor*> present;
  const auto* reflection = message->GetReflection();
  reflection->ListFields(*message, &present);
  for (const FieldDescriptor* field : present) {
    if (field->options().GetExtension(v1::reads_file)) {
      ChangeField(field, change, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      ChangeMessage(change, reflection->MutableMessage(message, field));
    }
  }
}

}  // namespace

void ForEachReadPath(v1::JobConfig* config, const std::function<void(std::string* path)>& change) {
  ChangeMessage(change, config);
}

void ResolveReadPaths(const std::string& config_directory, v1::JobConfig* config) {
  namespace fs = std::filesystem;
  ForEachReadPath(config, [&](std::string* path) {
    std::error_code error;
    for (const fs::path& base : {fs::path(config_directory), fs::path()}) {
      const fs::path found = base / *path;
      if (!fs::exists(found, error)) continue;
      *path = fs::absolute(found, error).lexically_normal().string();
      return;
    }
  });
}

}  // namespace rubato
