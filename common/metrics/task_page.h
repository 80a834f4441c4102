#ifndef RUBATO_COMMON_METRICS_TASK_PAGE_H_
#define RUBATO_COMMON_METRICS_TASK_PAGE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/http/http_server.h"
#include "common/metrics/metric_text.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// What a task shows over HTTP (--metrics_listen): /metrics for Prometheus, /healthz for probes, and pages of its own.
// Owns the listener and its thread.
//
//   options.listen = flags.metrics_listen;  // Empty: there is no page.
//   RUBATO_ASSIGN_OR_RETURN(options.token, TokenForMetrics(config, options.listen));
//   RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, TaskPage::Create(std::move(options)));
class TaskPage {
 public:
  struct Options {
    // "host:port"; port 0 takes a free one. Empty: nothing is shown.
    std::string listen = {};
    // Without this nothing but /healthz is answered ("Authorization: Bearer TOKEN"). Empty: everybody may read
    // (TokenForMetrics).
    std::string token = {};
    // In the place of that port, where an earlier incarnation of the task has had it. 0: there was none.
    int port = 0;
    v1::TaskId task = {};
    // Adds what the task measures. Called on the page's thread; must be quick.
    std::function<void(MetricText*)> metrics = {};
    // Other pages; 404 if there is none. May be empty.
    HttpServer::Handler other = {};
    // Both outlive the page.
    const Health* health = nullptr;
    const Clock* clock = nullptr;
  };

  // Null if `listen` is empty. Errors of HttpServer::Create, with the flag's name.
  static absl::StatusOr<std::unique_ptr<TaskPage>> Create(Options options);
  TaskPage(const TaskPage&) = delete;
  TaskPage& operator=(const TaskPage&) = delete;

  int port() const { return server_->port(); }
  // "host:port" as a task registers it: without the host if that is a wildcard, so that the address is meant that
  // others see.
  std::string address() const;

 private:
  explicit TaskPage(Options options) : options_(std::move(options)) {}
  // The page's thread's.
  HttpReply Answer(const HttpRequest& request);
  const std::string& RecentMetrics();
  std::string Metrics() const;

  const Options options_;
  std::string metrics_;  // Of that time.
  absl::Time measured_ = absl::InfinitePast();
  std::unique_ptr<HttpServer> server_;  // Last: its thread uses what is above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_METRICS_TASK_PAGE_H_
