// check_trace TRACE.json FIRST_LAYER: fails when the file is no Chrome trace of a worker, or when no step of it shows a
// push that begins before the backward pass ends, or a forward pass of the first layer that begins before the last
// weights of its step are there.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace {

struct Step {
  double backward_end = 0;
  double first_push = 1e300;     // Of this step's gradients, which the next step's exchange carries.
  double first_forward = 1e300;  // Of the first layer.
  double last_arrival = 0;       // Of this step's weights.
};

int Check(const nlohmann::json& trace, const std::string& first_layer) {
  std::map<int64_t, Step> steps;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string name = event.at("name"), category = event.at("cat");
    const int64_t step = event.at("args").at("step");
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    if (category == "exchange") {
      steps[step].last_arrival = std::max(steps[step].last_arrival, end);
      steps[step - 1].first_push = std::min(steps[step - 1].first_push, begin);
    } else if (name.rfind("backward ", 0) == 0) {
      steps[step].backward_end = std::max(steps[step].backward_end, end);
    } else if (name == "forward " + first_layer) {
      steps[step].first_forward = begin;
    }
  }
  int pushes_overlap = 0, pulls_overlap = 0;
  for (const auto& [number, step] : steps) {
    if (step.first_push < step.backward_end) ++pushes_overlap;
    if (step.first_forward < step.last_arrival) ++pulls_overlap;
  }
  std::cout << steps.size() << " steps; pushes overlap backward in " << pushes_overlap
            << ", the first layer's forward begins before the last weights are there in " << pulls_overlap << "\n";
  return pushes_overlap > 0 && pulls_overlap > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream file(argv[1]);
  const nlohmann::json trace = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (trace.is_discarded() || !trace.contains("traceEvents")) {
    std::cerr << argv[1] << " is no trace\n";
    return 1;
  }
  return Check(trace, argv[2]);
}
