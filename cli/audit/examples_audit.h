#ifndef RUBATO_CLI_AUDIT_EXAMPLES_AUDIT_H_
#define RUBATO_CLI_AUDIT_EXAMPLES_AUDIT_H_

#include <cstdint>
#include <map>
#include <string>

#include "cli/audit/audit_report.h"
#include "proto/update_log.pb.h"

namespace rubato {

// Which examples were trained, of jobs whose pushes say so (DYNAMIC dispatch): no chunk may have one of them twice
// along the history that the job ended with (I8). Pushes that were undone by going back to a checkpoint do not count.
// Keeps some 100 bytes a shard and chunk. Pure; not thread-safe.
class ExamplesAudit {
 public:
  explicit ExamplesAudit(AuditReport* report) : report_(report) {}

  // The pushes that follow are of a term of which the steps from `end` on were undone later.
  void Begin(int64_t end) { end_ = end; }
  void OnPush(const std::string& where, const v1::UpdateRecord& push);
  // All logs have been read: counts what was trained.
  void Finish();

 private:
  // [begin, end) by begin; none touch.
  using Ranges = std::map<int64_t, int64_t>;
  using Shards = std::map<uint64_t, Ranges>;

  // Whether any of it was there.
  static bool Add(int64_t begin, int64_t end, Ranges* ranges);
  static int64_t Count(const Shards& shards);

  AuditReport* const report_;
  int64_t end_ = 0;
  std::map<uint32_t, Shards> chunks_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_EXAMPLES_AUDIT_H_
