#ifndef RUBATO_SERVER_RULES_ASSIGNMENT_H_
#define RUBATO_SERVER_RULES_ASSIGNMENT_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proto/parameter_server.pb.h"

namespace rubato::server {

// Which chunks of a partition still await their initial weights from a worker: those of a client's job that begins with
// nothing, before its first checkpoint. A chunk takes them once, so that a message may be repeated, and a worker that
// takes the place of one that is lost goes on where that one was. The rules of training (partition.h) know nothing of
// it: workers learn of their plan when everything is assigned. Pure; not thread-safe.
//
//   assignment.Await({0, 3});
//   assignment.Name(worker);
//   Assignment::Answer answer = assignment.OnAssign(worker, {0});  // answer.taken: {0}
class Assignment {
 public:
  struct Answer {
    // OK; WAITING: another worker is named; REFUSED.
    v1::ExchangeReply::Outcome outcome = v1::ExchangeReply::OK;
    // The chunks whose weights are to be taken now.
    std::vector<uint32_t> taken;
    std::string message;
  };

  // Before anything else. Without it nothing is awaited, and nothing can be assigned.
  void Await(const std::vector<uint32_t>& chunks);
  // Whom JobDescription.initial_weights_from names; the last one counts.
  void Name(const v1::TaskId& worker) { named_ = worker; }
  // A worker has sent the weights of these chunks.
  Answer OnAssign(const v1::TaskId& worker, const std::vector<uint32_t>& chunks);
  // It has sent what goes with them, of the optimizer's state: a chunk takes that until it has its weights.
  Answer OnAssignState(const v1::TaskId& worker, const std::vector<uint32_t>& chunks) const;

  // Whether no chunk awaits anything.
  bool complete() const { return lacking_.empty(); }

 private:
  bool awaited_ = false;
  std::set<uint32_t> lacking_;
  // Incarnation 0: nobody yet.
  v1::TaskId named_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_ASSIGNMENT_H_
