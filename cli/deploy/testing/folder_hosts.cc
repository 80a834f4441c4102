#include "cli/deploy/testing/folder_hosts.h"

#include <unistd.h>

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/deploy/task_assignment.h"
#include "cli/launch/local_program.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;

constexpr char kMakePackage[] = R"SCRIPT(
set -e
cd "$1"
mkdir -p rubato-0/bin
cd rubato-0
cat >bin/coordinator <<'END'
#!/bin/sh
echo "$@"
while [ $# -gt 0 ]; do
  if [ "$1" = --port_file ]; then echo name:7071 >"$2"; fi
  shift
done
exec sleep 60
END
printf '#!/bin/sh\necho "$@"\nexec sleep 60\n' >bin/server
printf '#!/bin/sh\necho "$@"\nexit 3\n' >bin/worker
chmod +x bin/*
echo >bin/librubato_client.so
{ echo "machine $(uname -m)"; sha256sum bin/*; } >MANIFEST
cd ..
tar -czf "$2" rubato-0/MANIFEST rubato-0/bin
rm -r rubato-0)SCRIPT";

}  // namespace

FolderHosts::FolderHosts()
    : root_(fs::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name()),
      id_(absl::StrCat("job-", getpid())) {
  fs::remove_all(root_);
  fs::create_directories(root_ / "run");
  // The last argument is the command, the one before it the host. A file says how many GPUs hosts have, if any, and one
  // how long ssh takes to end after its command.
  std::ofstream(Path("ssh")) << "#!/bin/sh\nhost=\nlast=\nfor word; do host=$last last=$word; done\n"
                                "[ \"$host\" != away ] || { echo \"connect to host away: refused\" >&2; exit 255; }\n"
                                "if [ -e \"${0%/*}/linger\" ]; then\n"
                                "  sh -c \"$last\" || exit\n"
                                "  exec sleep \"$(cat \"${0%/*}/linger\")\"\n"
                                "fi\n"
                                "[ -e \"${0%/*}/gpus\" ] || exec sh -c \"$last\"\n"
                                "sh -c \"$last\" | sed \"s/^gpus .*/gpus $(cat \"${0%/*}/gpus\")/\"\n";
  fs::permissions(root_ / "ssh", fs::perms::owner_all);
  std::ofstream(Path("job.textproto")) << "name: 'job'\n";
  EXPECT_TRUE(RunProgram({"sh", "-c", kMakePackage, "sh", root_.string(), Path("package.tar.gz")}).ok());
  package_ = *OpenPackage(Path("package.tar.gz"));
  config_.set_name("job");
  config_.mutable_cluster()->set_servers(1);
  config_.mutable_cluster()->set_workers(1);
  signals_ = *StopSignals::Create();
}

std::unique_ptr<SshJob> FolderHosts::Job(const std::string& id, const std::string& second) {
  v1::Deployment deployment;
  v1::HostConfig* a = deployment.mutable_hosts()->add_hosts();
  a->set_host("a");
  a->set_address("fd00::1");
  a->set_directory(Path("it's \"a\" $HOME; `id` & \\ folder"));
  a->set_servers(1);
  a->set_coordinator(true);
  v1::HostConfig* b = deployment.mutable_hosts()->add_hosts();
  b->set_host(second);
  b->set_directory(Path("b"));
  b->set_workers(config_.cluster().workers());
  b->set_evaluators(config_.cluster().evaluators());
  const std::vector<v1::DeployedTask> tasks = *AssignTasks(deployment.hosts(), config_.cluster());
  deployment.mutable_tasks()->Add(tasks.begin(), tasks.end());
  if (program_.command_size() > 0) *deployment.mutable_hosts()->mutable_worker_program() = program_;
  deployment.mutable_ssh()->set_program(Path("ssh"));
  deployment.set_job_id(id);
  absl::StatusOr<std::unique_ptr<SshJob>> job = SshJob::Create(deployment, &clock_, signals_.get());
  EXPECT_TRUE(job.ok()) << job.status();
  return *std::move(job);
}

std::string FolderHosts::TasksWith(SshJob* job, const std::string& part) {
  const absl::Time deadline = clock_.Now() + absl::Seconds(20);
  std::string text;
  while (text.find(part) == std::string::npos && clock_.Now() < deadline) text = job->DescribeTasks();
  return text;
}

}  // namespace rubato
