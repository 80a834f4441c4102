#include "client/library/tensor_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rubato::client {
namespace {

std::string Failure(const char* what, size_t bytes) {
  const int error = errno;
  char text[128] = "";
  return "memory of " + std::to_string(bytes) + " bytes for weights and gradients: " + what + ": " +
         strerror_r(error, text, sizeof(text));
}

}  // namespace

std::unique_ptr<TensorMemory> TensorMemory::Create(TensorLayout layout, std::string* error) {
  const int descriptor = memfd_create("rubato client", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) {
    *error = Failure("memfd_create", layout.tensor_bytes);
    return nullptr;
  }
  void* data = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(layout.total_bytes)) != 0) {
    *error = Failure("ftruncate", layout.tensor_bytes);
  } else {
    data = mmap(nullptr, layout.tensor_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) *error = Failure("mmap", layout.tensor_bytes);
  }
  if (data == MAP_FAILED) {
    close(descriptor);
    return nullptr;
  }
  return std::unique_ptr<TensorMemory>(new TensorMemory(std::move(layout), descriptor, static_cast<char*>(data)));
}

TensorMemory::~TensorMemory() {
  CloseDescriptor();
  munmap(data_, layout_.tensor_bytes);
}

void TensorMemory::CloseDescriptor() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

float* TensorMemory::Weights(uint32_t tensor) const {
  if (tensor >= layout_.tensors.size()) return nullptr;
  return reinterpret_cast<float*>(data_ + layout_.tensors[tensor].weights);
}

float* TensorMemory::Gradient(uint32_t tensor) const {
  if (tensor >= layout_.tensors.size()) return nullptr;
  return reinterpret_cast<float*>(data_ + layout_.tensors[tensor].gradient);
}

}  // namespace rubato::client
