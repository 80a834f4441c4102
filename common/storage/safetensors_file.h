#ifndef RUBATO_COMMON_STORAGE_SAFETENSORS_FILE_H_
#define RUBATO_COMMON_STORAGE_SAFETENSORS_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model_spec.h"

namespace rubato {

// Whether a path is to be read as a safetensors file: by its name, so that it is known before there is a file.
bool IsSafetensorsPath(absl::string_view path);

// A file of named tensors, as `rubato export` and PyTorch's safetensors write it (docs/formats.md). Elements are read
// as float32 if they are asked for; the file is never in memory as a whole. Not thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open("pretrained.safetensors"));
//   RUBATO_RETURN_IF_ERROR(file.CheckFits(model));
//   RUBATO_RETURN_IF_ERROR(file.Read("linear0.weight", offset, length, values));
class SafetensorsFile {
 public:
  // NotFound, PermissionDenied, ...: the file cannot be read. DataLoss: it is no safetensors file, or it ends too
  // early.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // Whether it has the tensors of a model, all and no others, with their shapes and as floating-point numbers of 16 or
  // 32 bits. FailedPrecondition names each one that is not so.
  absl::Status CheckFits(const ModelSpec& model) const;

  // `count` elements of a tensor from `offset` on, in row-major order. FailedPrecondition: there is no such tensor, or
  // it has another type. OutOfRange: it has fewer elements. DataLoss: the file has become shorter.
  absl::Status Read(absl::string_view tensor, int64_t offset, int64_t count, float* out);

 private:
  struct Tensor {
    std::string name;
    std::string dtype;  // "F32".
    Shape shape;
    uint64_t begin = 0;  // In the file.
    uint64_t bytes = 0;
  };
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

  SafetensorsFile(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  // The header and what it says of each tensor.
  absl::Status ReadHeader(uint64_t file_bytes);
  absl::Status ReadBytes(uint64_t at, size_t bytes, void* out);
  const Tensor* Find(absl::string_view name) const;
  absl::Status Bad(absl::string_view why) const;

  std::string path_;
  File file_;
  std::vector<Tensor> tensors_;  // By name.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_SAFETENSORS_FILE_H_
