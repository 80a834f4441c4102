// A server's part of a checkpoint: a manifest that is accepted is one whose arrays can all be read, and a checkpoint
// that is assembled from it has the elements that its shapes say.
//
// Input: the manifest, then one byte: how many times 64 bytes of data there are; with the highest bit the manifest's
// size and CRC of them are put right, which mutation alone would not achieve.
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato {
namespace {

// Removed with the process.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "checkpoint_fuzzer.XXXXXX").string();
    RUBATO_FUZZ_CHECK(mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(JoinPath(path_, name), std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  std::string path_;
};

std::string Data(size_t bytes) {
  std::string data(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7);
  return data;
}

std::string Repaired(const std::string& manifest, const std::string& data) {
  v1::CheckpointManifest parsed;
  if (!parsed.ParseFromString(manifest)) return manifest;
  parsed.set_data_bytes(data.size());
  parsed.set_data_crc32(
      static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()))));
  return parsed.SerializeAsString();
}

// Reads every array that the manifest speaks of.
void ReadArrays(const CheckpointPart& part) {
  std::vector<float> values;
  for (const v1::ChunkRecord& chunk : part.manifest.chunks()) {
    RUBATO_FUZZ_CHECK(chunk.length() >= 1 && static_cast<uint64_t>(chunk.length()) <= part.data.size() / sizeof(float),
                      chunk.length());
    values.resize(chunk.length());
    part.Copy(chunk.values_at(), chunk.length(), values.data());
    for (const uint64_t at : chunk.slots_at()) part.Copy(at, chunk.length(), values.data());
  }
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  static const Directory directory;
  Trailer trailer(data, size);
  const uint8_t setting = trailer.TakeByte();
  const std::string arrays = Data((setting & 0x7f) * 64);
  directory.Write("server-0.data", arrays);
  directory.Write("server-0.manifest", setting & 0x80 ? Repaired(trailer.Rest(), arrays) : trailer.Rest());

  const absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(directory.path(), v1::TaskId::SERVER, 0);
  if (part.ok()) ReadArrays(*part);
  const absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(directory.path());
  RUBATO_FUZZ_CHECK(part.ok() || !checkpoint.ok(), "a checkpoint with a part that is refused");
  if (!checkpoint.ok()) return 0;
  for (const NamedTensor& tensor : checkpoint->tensors) {
    size_t elements = 1;
    for (const int64_t dimension : tensor.shape) elements *= static_cast<size_t>(dimension);
    RUBATO_FUZZ_CHECK(tensor.values.size() == elements, tensor.name);
  }
  return 0;
}
