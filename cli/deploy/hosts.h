#ifndef RUBATO_CLI_DEPLOY_HOSTS_H_
#define RUBATO_CLI_DEPLOY_HOSTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/deployment.pb.h"

namespace rubato {

// Reads a hosts file (v1::HostsConfig as a textproto), fills in the defaults and checks it.
// NotFound, PermissionDenied, ...: it cannot be read. InvalidArgument: all errors of it, a line each, as for job
// configs.
absl::StatusOr<v1::HostsConfig> LoadHosts(const std::string& path);

// The same for a text; `name` stands for the file's path in messages.
absl::StatusOr<v1::HostsConfig> ParseHosts(const std::string& text, absl::string_view name);

// The host as it stands in "host:port": an IPv6 address in brackets.
std::string Bracketed(const std::string& host);

// "host:port".
std::string HostAndPort(const std::string& host, uint32_t port);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_HOSTS_H_
