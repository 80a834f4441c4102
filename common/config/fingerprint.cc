#include "common/config/fingerprint.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/config/data_paths.h"

namespace rubato {
namespace {

v1::JobConfig Compared(v1::JobConfig compared) {
  compared.clear_run_directory();
  // What a task finds on its machine: also the folders of files that it reads, not their names.
  ForEachReadPath(&compared, [](std::string* path) { *path = std::filesystem::path(*path).filename().string(); });
  compared.mutable_training()->clear_device();
  compared.mutable_training()->clear_device_index();
  compared.mutable_training()->clear_gpus();
  compared.mutable_training()->clear_no_cuda_graphs();
  compared.mutable_training()->clear_no_cudnn();
  compared.mutable_training()->clear_no_fused_attention();
  // A job may be resumed with other numbers of tasks.
  compared.mutable_cluster()->clear_servers();
  compared.mutable_cluster()->clear_workers();
  compared.mutable_cluster()->clear_server_grace_seconds();
  // What changes nothing of what is computed.
  compared.clear_checkpoint();
  compared.clear_observability();
  // Each task has its own credentials.
  compared.clear_security();
  return compared;
}

}  // namespace

uint64_t ConfigFingerprint(const v1::JobConfig& config) {
  const v1::JobConfig compared = Compared(config);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    compared.SerializeToCodedStream(&coded);
  }
  // FNV-1a (Fowler, Noll, Vo).
  uint64_t hash = 0xcbf29ce484222325u;
  for (char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash == 0 ? 1 : hash;
}

std::string ConfigDifference(const v1::JobConfig& before, const v1::JobConfig& after) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string report;
  differencer.ReportDifferencesToString(&report);
  if (differencer.Compare(Compared(before), Compared(after))) return "";
  std::vector<std::string> differences;
  for (absl::string_view line : absl::StrSplit(report, '\n', absl::SkipEmpty())) {
    // What else it says of a field: added, deleted.
    absl::ConsumePrefix(&line, "modified: ");
    differences.emplace_back(line);
  }
  return absl::StrJoin(differences, ", ");
}

std::string ConfigText(const v1::JobConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  return text;
}

}  // namespace rubato
