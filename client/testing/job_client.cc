// A client for tests/e2e/clients_test.sh: takes part in a job in one of several ways, checks what it gets, and says on
// standard output how far it is. Exit status 0: all was as it should be.
//
//   job_client HOST:PORT RANK SIDECAR WAY [awaits|keeps]
//
// With `awaits` it reads each tensor's weights before the step begins, as soon as they are there; with `keeps` those of
// a step stay until the next one begins.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "client/testing/ways.h"

namespace rubato::client {

int Main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  Job job = {.coordinator = argv[1],
             .rank = static_cast<uint32_t>(std::atoi(argv[2])),
             .sidecar = argv[3],
             .awaits = argc == 6 && std::strcmp(argv[5], "awaits") == 0,
             .keeps = argc == 6 && std::strcmp(argv[5], "keeps") == 0};
  const std::map<std::string, std::function<void(Job*)>> ways = {{"mean", Mean},
                                                                 {"sgd", Sgd},
                                                                 {"survive", [](Job* one) { Survive(one, false); }},
                                                                 {"killed", [](Job* one) { Survive(one, true); }},
                                                                 {"differ", Differ},
                                                                 {"ended", UntilEnded},
                                                                 {"errors", Errors},
                                                                 {"lease", Lease},
                                                                 {"restart", Restart},
                                                                 {"rollback", Rollback},
                                                                 {"rows", Rows},
                                                                 {"rows-rollback", RowsRollback},
                                                                 {"silent", Silent},
                                                                 {"state", State},
                                                                 {"talk", Talk}};
  const auto way = ways.find(argv[4]);
  if (way == ways.end()) return 2;
  way->second(&job);
  return 0;
}

}  // namespace rubato::client

int main(int argc, char** argv) { return rubato::client::Main(argc, argv); }
