#include "cli/deploy/hosts.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/config/config_text.h"
#include "common/config/error_list.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr int kHostsMax = 1024;
constexpr int kSlotsMax = 1024;
constexpr int kPortMax = 65535;
constexpr int kWordsMax = 1024;

bool HasControlCharacter(absl::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

// What becomes an argument of ssh: a leading '-' would make it an option.
void CheckName(absl::string_view path, const std::string& value, ErrorList* errors) {
  const bool good = !absl::StartsWith(value, "-") && !HasControlCharacter(value) && !absl::StrContains(value, ' ');
  if (!good) errors->Add(path, absl::StrCat("\"", value, "\""), "a name without spaces that does not begin with '-'");
}

void CheckHost(const v1::HostConfig& host, const std::string& path, ErrorList* errors) {
  errors->CheckNotEmpty(absl::StrCat(path, ".host"), host.host(), "what ssh reaches the host by");
  CheckName(absl::StrCat(path, ".host"), host.host(), errors);
  CheckName(absl::StrCat(path, ".user"), host.user(), errors);
  CheckName(absl::StrCat(path, ".address"), host.address(), errors);
  errors->CheckInteger(absl::StrCat(path, ".port"), host.port(), 0, kPortMax);
  errors->CheckInteger(absl::StrCat(path, ".servers"), host.servers(), 0, kSlotsMax);
  errors->CheckInteger(absl::StrCat(path, ".workers"), host.workers(), 0, kSlotsMax);
  errors->CheckInteger(absl::StrCat(path, ".evaluators"), host.evaluators(), 0, kSlotsMax);
  const std::string& directory = host.directory();
  const bool plain = !HasControlCharacter(directory) && !absl::StartsWith(directory, "-");
  if (!plain || absl::StartsWith(directory, "~")) {
    errors->Add(absl::StrCat(path, ".directory"), absl::StrCat("\"", directory, "\""),
                "an absolute path, or one that is relative to the user's home; it does not begin with '-' or '~'");
  }
}

void CheckProgram(const v1::WorkerProgram& program, ErrorList* errors) {
  errors->CheckInteger("worker_program.command", program.command_size(), 1, kWordsMax);
  if (program.command_size() > 0) errors->CheckNotEmpty("worker_program.command[0]", program.command(0), "a program");
  for (int i = 0; i < program.command_size(); ++i) {
    if (HasControlCharacter(program.command(i))) {
      errors->Add(absl::StrCat("worker_program.command[", i, "]"), absl::StrCat("\"", program.command(i), "\""),
                  "a word without control characters");
    }
  }
  for (int i = 0; i < program.environment_size(); ++i) {
    const std::string& variable = program.environment(i);
    const bool named = variable.find('=') != std::string::npos && variable[0] != '=' && variable[0] != '-';
    if (!named || HasControlCharacter(variable)) {
      errors->Add(absl::StrCat("worker_program.environment[", i, "]"), absl::StrCat("\"", variable, "\""),
                  "NAME=value without control characters");
    }
  }
}

absl::Status CheckHosts(const v1::HostsConfig& hosts) {
  ErrorList errors;
  errors.CheckInteger("hosts", hosts.hosts_size(), 1, kHostsMax);
  errors.CheckInteger("coordinator_port", hosts.coordinator_port(), 0, kPortMax);
  errors.CheckInteger("server_port", hosts.server_port(), 0, kPortMax);
  if (hosts.has_worker_program()) CheckProgram(hosts.worker_program(), &errors);
  std::set<std::string> names;
  int coordinators = 0;
  for (int i = 0; i < hosts.hosts_size(); ++i) {
    const v1::HostConfig& host = hosts.hosts(i);
    const std::string path = absl::StrCat("hosts[", i, "]");
    CheckHost(host, path, &errors);
    if (!names.insert(host.host()).second) {
      errors.Add(absl::StrCat(path, ".host"), absl::StrCat("\"", host.host(), "\" again"), "each host once");
    }
    coordinators += host.coordinator() ? 1 : 0;
    if (host.coordinator() && coordinators > 1) {
      errors.Add(absl::StrCat(path, ".coordinator"), "true again", "one host");
    }
    if (hosts.server_port() > 0) {
      errors.CheckInteger(absl::StrCat(path, ".servers, with server_port the last of its ports,"),
                          int64_t{hosts.server_port()} + std::max<int64_t>(host.servers(), 1) - 1, 1, kPortMax);
    }
  }
  return errors.ToStatus();
}

}  // namespace

absl::StatusOr<v1::HostsConfig> ParseHosts(const std::string& text, absl::string_view name) {
  v1::HostsConfig hosts;
  RUBATO_RETURN_IF_ERROR(ParseText(text, name, &hosts));
  bool has_coordinator = false;
  for (v1::HostConfig& host : *hosts.mutable_hosts()) {
    if (host.directory().empty()) host.set_directory("rubato");
    if (host.address().empty()) host.set_address(host.host());
    has_coordinator |= host.coordinator();
  }
  if (!has_coordinator && hosts.hosts_size() > 0) hosts.mutable_hosts(0)->set_coordinator(true);
  RUBATO_RETURN_IF_ERROR(Annotate(CheckHosts(hosts), name));
  return hosts;
}

absl::StatusOr<v1::HostsConfig> LoadHosts(const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseHosts(text, path);
}

std::string Bracketed(const std::string& host) {
  const bool bare_ipv6 = absl::StrContains(host, ':') && !absl::StartsWith(host, "[");
  return bare_ipv6 ? absl::StrCat("[", host, "]") : host;
}

std::string HostAndPort(const std::string& host, uint32_t port) { return absl::StrCat(Bracketed(host), ":", port); }

}  // namespace rubato
