#include "coordinator/rules/registration.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/proto_enum.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

// POSIX has no longer names of hosts, and Linux none of abstract sockets.
constexpr size_t kHostNameBytes = 255;
constexpr size_t kAddressBytes = kHostNameBytes + 8;
constexpr size_t kSocketNameBytes = 107;
// Of a word that is refused.
constexpr size_t kShownBytes = 64;

absl::Status Refuse(const v1::TaskId& task, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(TaskName(task), " is refused: ", why));
}

absl::Status CheckIndex(const v1::JobConfig& config, const v1::TaskId& task) {
  uint32_t tasks = 0;
  absl::string_view limit;
  switch (task.role()) {
    case v1::TaskId::SERVER:
      tasks = config.cluster().servers();
      limit = "cluster.servers";
      break;
    case v1::TaskId::WORKER:
      tasks = std::max(config.cluster().workers(), kMaxWorkers);
      limit = "the most workers that a job can have";
      break;
    case v1::TaskId::EVALUATOR:
      tasks = config.cluster().evaluators();
      limit = "cluster.evaluators";
      break;
    case v1::TaskId::COORDINATOR:
    case v1::TaskId::ROLE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::TaskId_Role_TaskId_Role) : break;
  }
  if (limit.empty()) return Refuse(task, "task.role must be SERVER, WORKER or EVALUATOR");
  if (task.index() < tasks) return absl::OkStatus();
  return Refuse(task, absl::StrCat("task.index: value ", task.index(), "; allowed: below ", tasks, ", ", limit));
}

// What others are told of a task, and people are shown: a word that fits on their line.
absl::Status CheckWord(const v1::TaskId& task, absl::string_view field, absl::string_view value, size_t most) {
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (plain && value.size() <= most) return absl::OkStatus();
  return Refuse(task, absl::StrCat(field, ": \"", absl::CHexEscape(value.substr(0, kShownBytes)), "\" has ",
                                   value.size(), " bytes; allowed: up to ", most, " without spaces, of ASCII"));
}

absl::Status CheckWords(const v1::TaskId& task, const v1::Register& info) {
  RUBATO_RETURN_IF_ERROR(CheckWord(task, "register.address", info.address(), kAddressBytes));
  RUBATO_RETURN_IF_ERROR(CheckWord(task, "register.metrics_address", info.metrics_address(), kAddressBytes));
  RUBATO_RETURN_IF_ERROR(CheckWord(task, "register.host_name", info.host_name(), kHostNameBytes));
  const v1::SharedMemoryAddress& shared = info.shared_memory();
  RUBATO_RETURN_IF_ERROR(CheckWord(task, "register.shared_memory.boot_id", shared.boot_id(), kSocketNameBytes));
  return CheckWord(task, "register.shared_memory.socket", shared.socket(), kSocketNameBytes);
}

}  // namespace

absl::Status CheckRegistration(const RegistrationRules& rules, const v1::TaskId& task, const v1::Register& info) {
  absl::Status index = CheckIndex(*rules.config, task);
  if (!index.ok()) return index;
  if (task.incarnation() == 0) return Refuse(task, "task.incarnation: value 0; allowed: a random number that is not 0");
  if (info.protocol_version() != kProtocolVersion) {
    return Refuse(task, absl::StrCat("it speaks protocol version ", info.protocol_version(), ", the coordinator ",
                                     kProtocolVersion, "; start all tasks from the same release"));
  }
  if (info.config_fingerprint() != rules.config_fingerprint) {
    return Refuse(task,
                  absl::StrFormat("its job config has fingerprint %016x, the coordinator's %016x; start all tasks "
                                  "with the same config and --set options",
                                  info.config_fingerprint(), rules.config_fingerprint));
  }
  RUBATO_RETURN_IF_ERROR(CheckWords(task, info));
  // What data clients have is in the config.
  if (task.role() != v1::TaskId::WORKER || rules.config->model().has_manifest()) return absl::OkStatus();
  if (info.train_examples() < 1) {
    return Refuse(task, absl::StrCat("train_examples: value ", info.train_examples(), "; allowed: 1 or more"));
  }
  if (rules.train_examples != 0 && info.train_examples() != rules.train_examples) {
    return Refuse(task, absl::StrCat("its training set has ", info.train_examples(), " examples, the other workers' ",
                                     rules.train_examples, "; all workers must read the same data"));
  }
  return absl::OkStatus();
}

std::string PeerHost(absl::string_view peer) {
  // gRPC may write the brackets of an IPv6 address as percent codes.
  std::string text = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view host = text;
  if (!absl::ConsumePrefix(&host, "ipv4:") && !absl::ConsumePrefix(&host, "ipv6:")) return "localhost";
  return std::string(host.substr(0, host.rfind(':')));
}

absl::StatusOr<std::string> ReachableAddress(absl::string_view announced, absl::string_view peer) {
  const size_t colon = announced.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(announced.substr(colon + 1), &port) || port < 1 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("register.address: value \"", announced, "\"; allowed: \"host:port\" with a port in 1 to 65535"));
  }
  absl::string_view host = announced.substr(0, colon);
  if (!host.empty() && host != "0.0.0.0" && host != "[::]") return std::string(announced);
  return absl::StrCat(PeerHost(peer), ":", port);
}

}  // namespace rubato::coordinator
