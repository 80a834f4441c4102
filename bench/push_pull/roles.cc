#include "bench/push_pull/roles.h"

#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// For a process to begin, or to end a run: memory is touched for the first time, and the machine may be busy. Shorter
// than a test's minute, so that the error says which subject it was.
constexpr absl::Duration kTimeout = absl::Seconds(30);

void Say(const std::string& line) { std::cout << line << std::endl; }

absl::StatusOr<std::string> Expect(Child* child, const std::string& line, absl::string_view word,
                                   absl::Duration timeout) {
  const absl::StatusOr<std::string> reply = child->Ask(line, timeout);
  if (!reply.ok()) return reply;
  if (!absl::StartsWith(*reply, word)) return absl::InternalError(*reply);
  return std::string(absl::StripLeadingAsciiWhitespace(absl::string_view(*reply).substr(word.size())));
}

// Answers one line of a Pair.
absl::StatusOr<std::string> Answer(Client* client, const std::string& line) {
  absl::string_view rest = line;
  int64_t nanoseconds = 0;
  if (absl::ConsumePrefix(&rest, "run ") && absl::SimpleAtoi(rest, &nanoseconds)) {
    RUBATO_ASSIGN_OR_RETURN(const Count count, client->Run(absl::Nanoseconds(nanoseconds)));
    return absl::StrCat("count ", count.round_trips, " ", absl::ToInt64Nanoseconds(count.elapsed));
  }
  if (line != "verify") return absl::InvalidArgumentError(absl::StrCat("\"", line, "\" is neither run nor verify"));
  RUBATO_RETURN_IF_ERROR(client->Verify());
  return "ready";
}

}  // namespace

absl::Status PlayServer(const Subject& subject, const Setup& setup) {
  absl::Status status = subject.serve(setup, [](const std::string& address) { Say(absl::StrCat("ready ", address)); });
  if (!status.ok()) Say(absl::StrCat("error ", status.message()));
  return status;
}

absl::Status PlayClient(const Subject& subject, const Setup& setup, const std::string& address) {
  absl::StatusOr<std::unique_ptr<Client>> client = subject.connect(setup, address);
  absl::StatusOr<std::string> reply = "ready";
  if (!client.ok()) reply = client.status();
  std::string line;
  for (;;) {
    Say(reply.ok() ? *reply : absl::StrCat("error ", reply.status().message()));
    if (!reply.ok()) return reply.status();
    if (!std::getline(std::cin, line)) return absl::OkStatus();
    reply = Answer(client->get(), line);
  }
}

absl::StatusOr<std::unique_ptr<Pair>> Pair::Start(const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = flags;
  arguments.push_back("--role=server");
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Child> server, Child::Start(arguments));
  RUBATO_ASSIGN_OR_RETURN(const std::string address, Expect(server.get(), "", "ready", kTimeout));
  arguments.back() = "--role=client";
  arguments.push_back(absl::StrCat("--address=", address));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Child> client, Child::Start(arguments));
  RUBATO_RETURN_IF_ERROR(Expect(client.get(), "", "ready", kTimeout).status());
  return std::unique_ptr<Pair>(new Pair(std::move(server), std::move(client)));
}

absl::StatusOr<Count> Pair::Run(absl::Duration duration) {
  RUBATO_ASSIGN_OR_RETURN(
      const std::string reply,
      Expect(client_.get(), absl::StrCat("run ", absl::ToInt64Nanoseconds(duration)), "count", duration + kTimeout));
  const std::pair<std::string, std::string> parts = absl::StrSplit(reply, absl::MaxSplits(' ', 1));
  Count count;
  int64_t nanoseconds = 0;
  if (!absl::SimpleAtoi(parts.first, &count.round_trips) || !absl::SimpleAtoi(parts.second, &nanoseconds)) {
    return absl::InternalError(absl::StrCat("\"", reply, "\" is not two numbers"));
  }
  count.elapsed = absl::Nanoseconds(nanoseconds);
  return count;
}

absl::Status Pair::Verify() { return Expect(client_.get(), "verify", "ready", kTimeout).status(); }

}  // namespace rubato::bench
