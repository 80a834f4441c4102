#include "common/config/fingerprint.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <filesystem>

#include "common/config/data_paths.h"

namespace rubato {

uint64_t ConfigFingerprint(const v1::JobConfig& config) {
  v1::JobConfig compared = config;
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

std::string ConfigText(const v1::JobConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  return text;
}

}  // namespace rubato
