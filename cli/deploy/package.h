#ifndef RUBATO_CLI_DEPLOY_PACKAGE_H_
#define RUBATO_CLI_DEPLOY_PACKAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

// An archive that is copied to hosts. Its id follows from its contents, so that a host needs each only once.
struct Archive {
  std::string path;
  // Hexadecimal digits.
  std::string id;
  int64_t bytes = 0;
};

// What `./rubato.sh package` makes.
struct Package {
  Archive archive;
  // From its manifest (docs/formats.md): "x86_64", and the lowest glibc that it runs with, or an empty text for any.
  std::string machine;
  std::string glibc;
};

// InvalidArgument: the file is no package; names it. NotFound: there is no such file, or no tar or sha256sum here.
absl::StatusOr<Package> OpenPackage(const std::string& path);

// Packs files and folders, given by relative paths, into the file `output`. The same contents give the same id.
// InvalidArgument: a path is absolute, or has a part "..", or there is nothing; names it.
absl::StatusOr<Archive> PackData(const std::vector<std::string>& paths, const std::string& output);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_PACKAGE_H_
