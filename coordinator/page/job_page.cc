#include "coordinator/page/job_page.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/config/fingerprint.h"
#include "common/http/listen_address.h"
#include "common/security/operator_token.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/run_record_json.h"
#include "coordinator/page/status_json.h"

namespace rubato::coordinator {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kAddressFile[] = "page.address";
// How long a snapshot waits for the runner's thread.
constexpr absl::Duration kStatusTimeout = absl::Seconds(2);
// How long what was asked for may take; the record says what became of it.
constexpr absl::Duration kLongestWait = absl::Minutes(2);

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

HttpReply Asked() { return {.status = 202, .body = "asked\n"}; }

// A request of the operator in protobuf's JSON mapping; an empty body is an empty one.
template <class Request>
absl::StatusOr<Request> ParseRequest(const std::string& body) {
  Request request;
  const auto parsed = google::protobuf::util::JsonStringToMessage(body.empty() ? "{}" : body, &request);
  if (parsed.ok()) return request;
  return absl::InvalidArgumentError(absl::StrCat("not a ", Request::descriptor()->name(), ": ",
                                                 absl::string_view(parsed.message().data(), parsed.message().size())));
}

HttpReply BadRequest(const absl::Status& why) { return {.status = 400, .body = absl::StrCat(why.message(), "\n")}; }

// "worker-12"
bool IsTaskFile(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "worker-") && !absl::ConsumePrefix(&name, "server-")) return false;
  return absl::ConsumeSuffix(&name, ".json") && !name.empty() &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobPage>> JobPage::Create(Options options) {
  const std::string directory = options.config.run_directory();
  RUBATO_RETURN_IF_ERROR(MakeDirectories(directory));
  RUBATO_ASSIGN_OR_RETURN(std::string token, MakeOrReadOperatorToken(directory));
  auto page = absl::WrapUnique(new JobPage(std::move(options), std::move(token)));
  const std::string record = ReadFile(JoinPath(directory, "metrics.jsonl")).value_or("");
  for (const absl::string_view text : absl::StrSplit(record, '\n', absl::SkipEmpty())) {
    // Of a process that died there may be half a line.
    const absl::StatusOr<v1::RunRecordLine> line = ParseRunRecordJson(text);
    if (line.ok()) page->OnLine(*line);
  }
  return page;
}

JobPage::JobPage(Options options, std::string token)
    : options_(std::move(options)),
      token_(std::move(token)),
      feed_({.name = options_.config.name(),
             .directory = options_.config.run_directory(),
             .config_text = ConfigText(options_.config)}) {}

void JobPage::Close() {
  if (server_ == nullptr) return;
  server_->Flush();
  server_ = nullptr;
  (void)RemoveFile(JoinPath(options_.config.run_directory(), kAddressFile));
}

void JobPage::OnLine(const v1::RunRecordLine& line) {
  MutexLock lock(mu_);
  feed_.Add(line);
}

absl::StatusOr<std::unique_ptr<PageServer>> JobPage::Serve(const std::string& listen) {
  return PageServer::Create({.access = {.listen = listen, .token = token_}, .source = this, .clock = options_.clock});
}

absl::Status JobPage::Open(JobRunner* runner) {
  runner_ = runner;
  const std::string file = JoinPath(options_.config.run_directory(), kAddressFile);
  absl::StatusOr<std::unique_ptr<PageServer>> server = absl::NotFoundError("not tried");
  // A coordinator that was killed has left its address, and those who watch look for it there.
  const std::string earlier(absl::StripAsciiWhitespace(ReadFile(file).value_or("")));
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options_.listen);
  const absl::StatusOr<ListenAddress> before = ParseListenAddress(earlier);
  if (address.ok() && address->port == 0 && before.ok()) server = Serve(WithPort(options_.listen, before->port));
  if (!server.ok()) server = Serve(options_.listen);
  if (!server.ok()) return Annotate(server.status(), "observability.page_address");
  server_ = *std::move(server);
  return WriteFileAtomically(file, absl::StrCat(server_->address(), "\n"));
}

std::string JobPage::url() const { return absl::StrCat("http://", server_->address(), "/"); }

void JobPage::Refresh() {
  const std::optional<v1::JobStatus> status = runner_->AwaitStatus(kStatusTimeout);
  if (!status.has_value()) return;
  Json json = StatusJson(*status);
  MutexLock lock(mu_);
  status_ = std::move(json);
}

std::string JobPage::News() {
  MutexLock lock(mu_);
  Json news = feed_.News();
  news["status"] = status_;
  return Text({{"runs", Json::array({std::move(news)})}});
}

std::string JobPage::Everything() {
  MutexLock lock(mu_);
  Json all = feed_.Everything();
  all["status"] = status_;
  return Text({{"runs", Json::array({std::move(all)})}, {"controls", true}});
}

HttpReply JobPage::Answer(const HttpRequest& request) {
  if (request.post) return Ask(request);
  if (absl::StartsWith(request.path, "/trace/")) return TraceFile(request.path);
  return {.status = 404, .body = "/ and /events are here\n"};
}

HttpReply JobPage::Ask(const HttpRequest& request) {
  const std::string by = absl::StrCat("operator at ", request.peer);
  if (request.path == "/switch") {
    const auto change = ParseRequest<v1::SwitchModeRequest>(request.body);
    if (!change.ok()) return BadRequest(change.status());
    runner_->SwitchMode(*change, by, kLongestWait, [](const absl::StatusOr<v1::SwitchModeReply>&) {});
  } else if (request.path == "/checkpoint") {
    runner_->WriteCheckpoint(by, kLongestWait, [](const absl::StatusOr<v1::WriteCheckpointNowReply>&) {});
  } else if (request.path == "/trace") {
    const auto trace = ParseRequest<v1::TraceJobRequest>(request.body);
    if (!trace.ok()) return BadRequest(trace.status());
    runner_->Trace(*trace, by, [](const absl::StatusOr<v1::TraceJobReply>&) {});
  } else if (request.path == "/stop") {
    runner_->Stop("on its page", by, [] {});
  } else {
    return {.status = 404, .body = "/switch, /checkpoint, /trace and /stop can be asked for\n"};
  }
  return Asked();
}

HttpReply JobPage::TraceFile(const std::string& path) const {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  const bool named = parts.size() == 4 && !parts[2].empty() &&
                     std::all_of(parts[2].begin(), parts[2].end(), absl::ascii_isdigit) && IsTaskFile(parts[3]);
  if (!named) return {.status = 404, .body = "/trace/ID/worker-INDEX.json and server-INDEX.json are here\n"};
  absl::StatusOr<std::string> text =
      ReadFile(JoinPath(options_.config.run_directory(), absl::StrCat("traces/", parts[2], "/", parts[3])));
  if (!text.ok()) {
    return {.status = 404,
            .body = "this trace is not in the coordinator's run directory: the task may run elsewhere\n"};
  }
  return {.content_type = "application/json", .body = *std::move(text)};
}

}  // namespace rubato::coordinator
