#ifndef RUBATO_COMMON_HTTP_TESTING_HTTP_CLIENT_H_
#define RUBATO_COMMON_HTTP_TESTING_HTTP_CLIENT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/file_descriptor.h"

namespace rubato {

// A client of a server on this machine, for tests.

FileDescriptor ConnectTo(int port);
void Say(const FileDescriptor& client, absl::string_view text);
// Until the server closes the connection.
std::string Hear(const FileDescriptor& client);
// What has come when it ends with `last`, or the server has closed the connection.
std::string HearUntil(const FileDescriptor& client, absl::string_view last);
// The answer to a whole request on a connection of its own.
std::string Ask(int port, absl::string_view request);

}  // namespace rubato

#endif  // RUBATO_COMMON_HTTP_TESTING_HTTP_CLIENT_H_
