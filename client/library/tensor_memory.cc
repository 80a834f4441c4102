#include "client/library/tensor_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace rubato::client {
namespace {

std::string Failure(const char* what, size_t bytes) {
  const int error = errno;
  char text[128] = "";
  return "memory of " + std::to_string(bytes) + " bytes for weights and gradients: " + what + ": " +
         strerror_r(error, text, sizeof(text));
}

// The sizes of weights that have stayed.
struct KeptWeights {
  std::mutex mu;
  std::map<const void*, size_t> bytes;
};

KeptWeights& TheKeptWeights() {
  static auto* const kept = new KeptWeights();
  return *kept;
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
  const size_t kept = keeps_weights_ ? layout_.weight_bytes : 0;
  if (kept > 0) {
    KeptWeights& all = TheKeptWeights();
    const std::lock_guard<std::mutex> lock(all.mu);
    all.bytes[data_] = kept;
  }
  if (layout_.tensor_bytes > kept) munmap(data_ + kept, layout_.tensor_bytes - kept);
}

void TensorMemory::FreeWeights(const float* weights) {
  KeptWeights& all = TheKeptWeights();
  const std::lock_guard<std::mutex> lock(all.mu);
  const auto found = all.bytes.find(weights);
  if (found == all.bytes.end()) return;
  munmap(const_cast<void*>(found->first), found->second);
  all.bytes.erase(found);
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
