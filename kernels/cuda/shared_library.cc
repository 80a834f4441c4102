#include "kernels/cuda/shared_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace rubato::cuda {

absl::StatusOr<std::unique_ptr<SharedLibrary>> SharedLibrary::Open(const std::string& name, const std::string& folder) {
  std::string said;
  for (const std::string& path : {name, absl::StrCat(folder, "/", name)}) {
    // It may have threads and handlers of its own that outlive what it was loaded for, so it stays.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) return std::unique_ptr<SharedLibrary>(new SharedLibrary(name, handle));
    const char* error = dlerror();
    absl::StrAppend(&said, said.empty() ? "" : "; ", error == nullptr ? "unknown error" : error);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(name, " cannot be loaded: install it, or name its folder in LD_LIBRARY_PATH (", said, ")"));
}

SharedLibrary::~SharedLibrary() { dlclose(handle_); }

absl::Status SharedLibrary::FindAddress(const char* name, void** address) const {
  *address = dlsym(handle_, name);
  if (*address != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(name_, " has no ", name, ": another version is needed"));
}

}  // namespace rubato::cuda
