#ifndef RUBATO_KERNELS_CUDA_SHARED_LIBRARY_H_
#define RUBATO_KERNELS_CUDA_SHARED_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rubato::cuda {

// A library that is loaded while the program runs, and then stays. Thread-safe.
class SharedLibrary {
 public:
  // Where the system's loader finds `name`, or else in `folder`. FailedPrecondition: in neither, with what the loader
  // says.
  static absl::StatusOr<std::unique_ptr<SharedLibrary>> Open(const std::string& name, const std::string& folder);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // FailedPrecondition: the library has no such function, being older, say.
  template <typename Function>
  absl::Status Find(const char* name, Function* function) const {
    void* address = nullptr;
    absl::Status status = FindAddress(name, &address);
    if (status.ok()) *function = reinterpret_cast<Function>(address);
    return status;
  }

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  absl::Status FindAddress(const char* name, void** address) const;

  const std::string name_;
  void* const handle_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_SHARED_LIBRARY_H_
