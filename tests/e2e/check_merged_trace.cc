// check_merged_trace MERGED.json SERVERS WORKERS: fails unless the file has all tasks of a job with the kinds of spans
// that each role records, and arrows from every worker to every server, none of which arrives before it begins, and
// whose ends lie in spans.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using Json = nlohmann::json;
using Track = std::pair<int, int>;  // Process, thread.

struct End {
  Track track;
  double at = 0;
};

struct Merged {
  std::map<int, std::string> processes;
  std::map<int, std::set<std::string>> categories;
  std::map<Track, std::vector<std::pair<double, double>>> spans;
  std::map<std::string, End> begins, arrives;
};

Merged Read(const Json& trace) {
  Merged merged;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    const int process = event.at("pid");
    if (phase == "M" && event.at("name") == "process_name") merged.processes[process] = event.at("args").at("name");
    if (phase == "M") continue;
    const Track track = {process, event.at("tid")};
    const double at = event.at("ts");
    if (phase == "X") {
      merged.categories[process].insert(event.at("cat"));
      merged.spans[track].emplace_back(at, at + event.at("dur").get<double>());
    } else {
      (phase == "s" ? merged.begins : merged.arrives)[event.at("id")] = {track, at};
    }
  }
  return merged;
}

bool Fail(const std::string& why) {
  std::cerr << "FAILED: " << why << "\n";
  return false;
}

bool CheckTasks(const Merged& merged, int servers, int workers) {
  std::set<std::string> expected, found;
  for (int i = 0; i < servers; ++i) expected.insert("server " + std::to_string(i));
  for (int i = 0; i < workers; ++i) expected.insert("worker " + std::to_string(i));
  for (const auto& [process, name] : merged.processes) {
    found.insert(name);
    const bool server = name.rfind("server", 0) == 0;
    for (const char* category :
         server ? std::vector<const char*>{"receive", "queue", "reduce", "barrier", "answer"}
                : std::vector<const char*>{"step", "data", "compute", "push", "pull", "exchange", "store"}) {
      if (merged.categories.at(process).count(category) == 0) return Fail(name + " has no span of " + category);
    }
  }
  return found == expected || Fail("the tasks are not those of the job");
}

bool InSpan(const Merged& merged, const End& end) {
  const auto spans = merged.spans.find(end.track);
  // Times in the file are rounded.
  return spans != merged.spans.end() && std::any_of(spans->second.begin(), spans->second.end(), [&](const auto& span) {
           return span.first <= end.at + 0.01 && end.at <= span.second + 0.01;
         });
}

bool CheckFlows(const Merged& merged, int servers, int workers) {
  std::map<std::pair<int, int>, int> arrows;
  double shortest = 1e300;
  for (const auto& [id, begin] : merged.begins) {
    const auto arrival = merged.arrives.find(id);
    if (arrival == merged.arrives.end()) return Fail("the arrow " + id + " does not arrive");
    if (!InSpan(merged, begin) || !InSpan(merged, arrival->second)) return Fail("an end of " + id + " is in no span");
    shortest = std::min(shortest, arrival->second.at - begin.at);
    ++arrows[{begin.track.first, arrival->second.track.first}];
  }
  std::cout << merged.begins.size() << " arrows, the shortest of " << shortest << " us\n";
  if (merged.arrives.size() != merged.begins.size()) return Fail("an arrow arrives that does not begin");
  if (shortest < 0) return Fail("a push was applied before it was sent");
  return static_cast<int>(arrows.size()) == servers * workers || Fail("not every worker has arrows to every server");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::ifstream file(argv[1]);
  const Json trace = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (trace.is_discarded()) return Fail(std::string(argv[1]) + " is no JSON") ? 0 : 1;
  const int servers = std::atoi(argv[2]), workers = std::atoi(argv[3]);
  const Merged merged = Read(trace);
  return CheckTasks(merged, servers, workers) && CheckFlows(merged, servers, workers) ? 0 : 1;
}
