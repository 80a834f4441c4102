#ifndef RUBATO_COORDINATOR_PAGE_JOB_PAGE_H_
#define RUBATO_COORDINATOR_PAGE_JOB_PAGE_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/page/page_server.h"
#include "common/page/run_feed.h"
#include "coordinator/job_runner.h"
#include "proto/job_config.pb.h"
#include "proto/run_record.pb.h"

namespace rubato::coordinator {

// The page of a running job: what it shows comes from the run record as it is written and from the job's status, and
// what an operator asks for there goes to the runner.
//
//   RUBATO_ASSIGN_OR_RETURN(auto page, JobPage::Create({.config = config, .listen = listen, .clock = &clock}));
//   options.on_line = [&](const v1::RunRecordLine& line) { page->OnLine(line); };  // of the runner
//   RUBATO_RETURN_IF_ERROR(page->Open(runner.get()));
class JobPage final : public PageSource {
 public:
  struct Options {
    // Complete.
    v1::JobConfig config;
    // "host:port"; port 0 takes a free one.
    std::string listen;
    // Outlives the page.
    const Clock* clock = nullptr;
  };

  // Makes the run's operator token, and reads what the record of a job that goes on has already. Errors of
  // MakeOrReadOperatorToken.
  static absl::StatusOr<std::unique_ptr<JobPage>> Create(Options options);

  // Any thread.
  void OnLine(const v1::RunRecordLine& line);

  // Serves the page, and writes where into page.address in the run directory: on the port that a coordinator before it
  // had, if that may be any. `runner` is there until Close. Errors of
  // PageServer::Create, with the name of the config's field, and of the disk.
  absl::Status Open(JobRunner* runner);
  // Tells those who watch how it ended, and serves nothing any more; the file with the address is gone. Before the
  // runner goes.
  void Close();
  // The page's URL, without the token.
  std::string url() const;

  void Refresh() override;
  std::string News() override;
  std::string Everything() override;
  HttpReply Answer(const HttpRequest& request) override;

 private:
  JobPage(Options options, std::string token);
  absl::StatusOr<std::unique_ptr<PageServer>> Serve(const std::string& listen);
  HttpReply Ask(const HttpRequest& request);
  // A task's trace: "/trace/<id>/worker-0.json".
  HttpReply TraceFile(const std::string& path) const;

  const Options options_;
  const std::string token_;
  Mutex mu_;
  RunFeed feed_ ABSL_GUARDED_BY(mu_);
  nlohmann::ordered_json status_ ABSL_GUARDED_BY(mu_) = nullptr;
  JobRunner* runner_ = nullptr;
  std::unique_ptr<PageServer> server_;  // Last: its threads use what is above.
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_PAGE_JOB_PAGE_H_
