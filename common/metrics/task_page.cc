#include "common/metrics/task_page.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/http/bearer_token.h"
#include "common/http/listen_address.h"
#include "common/metrics/process_metrics.h"
#include "common/security/token_file.h"
#include "common/status.h"

namespace rubato {
namespace {

HttpReply Unauthorized(absl::string_view why) {
  return {.status = 401, .body = absl::StrCat(why, "\n"), .headers = {"WWW-Authenticate: Bearer"}};
}

// Nothing: it has the token, or needs none.
std::optional<HttpReply> TokenRefusal(const std::string& token, const HttpRequest& request) {
  if (token.empty()) return std::nullopt;
  const std::optional<absl::string_view> shown = BearerToken(request);
  if (!shown.has_value()) {
    return Unauthorized(
        "the token is missing: metrics are read here with \"Authorization: Bearer\" and what is in the file "
        "metrics.token of the job's credentials");
  }
  if (!SameToken(*shown, token)) return Unauthorized("this is not the token of this job's metrics");
  return std::nullopt;
}

// As old as what a scrape gets may be: however often it is asked for, a task measures itself so often and no more.
constexpr absl::Duration kMetricsAge = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<TaskPage>> TaskPage::Create(Options options) {
  if (options.listen.empty()) return nullptr;
  if (options.port != 0) options.listen = WithPort(options.listen, options.port);
  std::unique_ptr<TaskPage> page(new TaskPage(std::move(options)));
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Create({.listen = page->options_.listen,
                          .handler = [self = page.get()](const HttpRequest& request) { return self->Answer(request); },
                          .clock = page->options_.clock});
  if (!server.ok()) return Annotate(server.status(), "--metrics_listen");
  page->server_ = *std::move(server);
  return page;
}

std::string TaskPage::address() const {
  const std::string host = options_.listen.substr(0, options_.listen.rfind(':'));
  const bool wildcard = host == "0.0.0.0" || host == "[::]" || host == "::";
  return absl::StrCat(wildcard ? "" : host, ":", port());
}

HttpReply TaskPage::Answer(const HttpRequest& request) {
  if (request.path == "/healthz") {
    const bool serving = options_.health->serving();
    return {.status = serving ? 200 : 503, .body = serving ? "serving\n" : "not serving\n"};
  }
  if (std::optional<HttpReply> refusal = TokenRefusal(options_.token, request)) return *std::move(refusal);
  if (request.path == "/metrics") return {.content_type = kMetricContentType, .body = RecentMetrics()};
  if (options_.other) return options_.other(request);
  return {.status = 404, .body = "/metrics and /healthz are here\n"};
}

const std::string& TaskPage::RecentMetrics() {
  const absl::Time now = options_.clock->Now();
  if (now - measured_ >= kMetricsAge) {
    metrics_ = Metrics();
    measured_ = now;
  }
  return metrics_;
}

std::string TaskPage::Metrics() const {
  MetricText text(MetricText::Labels{{"role", absl::AsciiStrToLower(v1::TaskId::Role_Name(options_.task.role()))},
                                     {"index", absl::StrCat(options_.task.index())}});
  text.Gauges("rubato_task_info", "1, with the incarnation of the task.",
              {{{{"incarnation", absl::StrCat(absl::Hex(options_.task.incarnation(), absl::kZeroPad16))}}, 1}});
  text.Gauge("rubato_task_serving", "1 when the task is ready for work, otherwise 0.", options_.health->serving());
  options_.metrics(&text);
  AddProcessMetrics(&text);
  return text.Take();
}

}  // namespace rubato
