// Asks a gRPC server whether it is healthy, or what it serves:
//   grpc_probe health ADDRESS [SERVICE]
//   grpc_probe services ADDRESS
//   grpc_probe symbol ADDRESS SYMBOL
#include <iostream>
#include <string>
#include <vector>

#include "common/health/testing/probe.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2 || words.size() > 3) return 2;
  const std::string last = words.size() == 3 ? words[2] : "";
  absl::StatusOr<std::string> answer = absl::InvalidArgumentError("unknown question " + words[0]);
  if (words[0] == "health") answer = rubato::ProbeHealth(words[1], last);
  if (words[0] == "services") answer = rubato::ProbeServices(words[1]);
  if (words[0] == "symbol") answer = rubato::ProbeSymbol(words[1], last);
  if (!answer.ok()) {
    std::cerr << answer.status().message() << "\n";
    return 1;
  }
  std::cout << *answer << "\n";
  return 0;
}
