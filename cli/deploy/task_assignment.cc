#include "cli/deploy/task_assignment.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/config/error_list.h"
#include "common/status.h"

namespace rubato {
namespace {

uint32_t Slots(const v1::HostConfig& host, v1::TaskId::Role role) {
  if (role == v1::TaskId::SERVER) return host.servers();
  if (role == v1::TaskId::WORKER) return host.workers();
  return host.evaluators();
}

void Deal(const v1::HostsConfig& hosts, v1::TaskId::Role role, uint32_t count, std::vector<v1::DeployedTask>* tasks,
          ErrorList* errors) {
  uint64_t slots = 0;
  for (const v1::HostConfig& host : hosts.hosts()) slots += Slots(host, role);
  if (slots < count) {
    const std::string name = absl::AsciiStrToLower(v1::TaskId::Role_Name(role));
    errors->Add(absl::StrCat("hosts.", name, "s, all together"), absl::StrCat(slots),
                absl::StrCat("at least ", count, ", the job's cluster.", name, "s"));
    return;
  }
  uint32_t index = 0;
  for (uint32_t slot = 0; index < count; ++slot) {
    for (int host = 0; host < hosts.hosts_size() && index < count; ++host) {
      if (slot >= Slots(hosts.hosts(host), role)) continue;
      v1::DeployedTask& task = tasks->emplace_back();
      task.set_role(role);
      task.set_index(index++);
      task.set_host(static_cast<uint32_t>(host));
      task.set_slot(slot);
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::DeployedTask>> AssignTasks(const v1::HostsConfig& hosts,
                                                          const v1::ClusterConfig& cluster) {
  std::vector<v1::DeployedTask> tasks;
  for (int host = 0; host < hosts.hosts_size(); ++host) {
    if (!hosts.hosts(host).coordinator()) continue;
    tasks.emplace_back().set_role(v1::TaskId::COORDINATOR);
    tasks.back().set_host(static_cast<uint32_t>(host));
    break;
  }
  ErrorList errors;
  Deal(hosts, v1::TaskId::SERVER, cluster.servers(), &tasks, &errors);
  Deal(hosts, v1::TaskId::WORKER, cluster.workers(), &tasks, &errors);
  Deal(hosts, v1::TaskId::EVALUATOR, cluster.evaluators(), &tasks, &errors);
  RUBATO_RETURN_IF_ERROR(errors.ToStatus());
  return tasks;
}

std::vector<uint32_t> FixedPorts(const v1::HostsConfig& hosts, const std::vector<v1::DeployedTask>& tasks, int host) {
  std::vector<uint32_t> ports;
  for (const v1::DeployedTask& task : tasks) {
    if (task.host() != static_cast<uint32_t>(host)) continue;
    if (task.role() == v1::TaskId::COORDINATOR && hosts.coordinator_port() > 0) {
      ports.push_back(hosts.coordinator_port());
    }
    if (task.role() == v1::TaskId::SERVER && hosts.server_port() > 0) {
      ports.push_back(hosts.server_port() + task.slot());
    }
  }
  return ports;
}

}  // namespace rubato
