#include "cli/deploy/task_assignment.h"

#include "absl/strings/str_cat.h"
#include "cli/deploy/hosts.h"
#include "cli/launch/task_commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::HostsConfig Hosts(const std::string& text) { return *ParseHosts(text, "hosts"); }

v1::ClusterConfig Cluster(uint32_t servers, uint32_t workers, uint32_t evaluators) {
  v1::ClusterConfig cluster;
  cluster.set_servers(servers);
  cluster.set_workers(workers);
  cluster.set_evaluators(evaluators);
  return cluster;
}

TEST(TaskAssignmentTest, DealsTasksToHostsInTurn) {
  const v1::HostsConfig hosts = Hosts(
      "hosts { host: 'a' workers: 1 } hosts { host: 'b' servers: 2 workers: 3 coordinator: true } "
      "hosts { host: 'c' workers: 2 evaluators: 1 }");
  absl::StatusOr<std::vector<v1::DeployedTask>> tasks = AssignTasks(hosts, Cluster(2, 5, 1));
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  std::vector<std::string> places;
  for (const v1::DeployedTask& task : *tasks) {
    places.push_back(
        absl::StrCat(TaskFileName(task.role(), task.index()), " ", hosts.hosts(task.host()).host(), task.slot()));
  }
  EXPECT_THAT(places, ElementsAre("coordinator b0", "server-0 b0", "server-1 b1", "worker-0 a0", "worker-1 b0",
                                  "worker-2 c0", "worker-3 b1", "worker-4 c1", "evaluator-0 c0"));
}

TEST(TaskAssignmentTest, NamesEveryRoleThatIsShort) {
  const std::string error =
      std::string(AssignTasks(Hosts("hosts { host: 'a' workers: 1 }"), Cluster(1, 2, 0)).status().message());
  EXPECT_THAT(error, HasSubstr("hosts.servers, all together: value 0; allowed: at least 1"));
  EXPECT_THAT(error, HasSubstr("hosts.workers, all together: value 1; allowed: at least 2"));
}

TEST(TaskAssignmentTest, KnowsThePortsThatMustBeFree) {
  const v1::HostsConfig hosts = Hosts(
      "coordinator_port: 7000 server_port: 7100 hosts { host: 'a' servers: 2 workers: 1 } hosts { host: 'b' workers: 1 "
      "}");
  const std::vector<v1::DeployedTask> tasks = *AssignTasks(hosts, Cluster(2, 2, 0));
  EXPECT_THAT(FixedPorts(hosts, tasks, 0), ElementsAre(7000, 7100, 7101));
  EXPECT_THAT(FixedPorts(hosts, tasks, 1), ElementsAre());
}

}  // namespace
}  // namespace rubato
