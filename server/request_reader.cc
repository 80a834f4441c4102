#include "server/request_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"
#include "kernels/optimizer/update_rule.h"
#include "server/push_reader.h"

namespace rubato::server {
namespace {

using Kind = PartitionRequest::Kind;

absl::Status Bad(absl::string_view field, absl::string_view rest) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", rest));
}

absl::Status CheckSender(const v1::ExchangeRequest& header, const v1::JobDescription& job) {
  if (header.job_fingerprint() != job.fingerprint()) {
    return Bad("job_fingerprint", absl::StrCat(absl::Hex(header.job_fingerprint()),
                                               " is another job; this server is in ", absl::Hex(job.fingerprint())));
  }
  if (header.task().incarnation() == 0) return Bad("task.incarnation", "0; it is never 0");
  const v1::TaskId::Role role = header.task().role();
  if (role == v1::TaskId::WORKER) return absl::OkStatus();
  if (role == v1::TaskId::EVALUATOR && header.has_snapshot()) return absl::OkStatus();
  return Bad("task.role", absl::StrCat(TaskName(header.task()),
                                       " may not send this; allowed: workers, and evaluators "
                                       "with a snapshot"));
}

// `region`: of header.shared_session, null if it is not known.
absl::Status CheckSession(const v1::ExchangeRequest& header, const SharedRegion* region) {
  if (header.shared_session() == 0) {
    return header.shared().empty() ? absl::OkStatus() : Bad("shared_session", "0, but shared is not empty");
  }
  if (region != nullptr) return absl::OkStatus();
  return Bad("shared_session", absl::StrCat(absl::Hex(header.shared_session()), " is not known here as one of ",
                                            TaskName(header.task())));
}

absl::Status CheckSlot(absl::string_view field, uint32_t slot, const PushHyperparameters::Rules& rules) {
  const int slots = rules.optimizer == nullptr ? 0 : NumSlots(rules.optimizer->algorithm());
  if (slot <= static_cast<uint32_t>(slots)) return absl::OkStatus();
  return Bad(field, absl::StrCat(slot, "; the job's optimizer has ", slots, " slots"));
}

absl::StatusOr<std::vector<int64_t>> ReadUpdates(const v1::Assign& assign) {
  std::vector<int64_t> updates(assign.updates().begin(), assign.updates().end());
  const bool fits = updates.empty() || (assign.slot() == 0 && assign.updates_size() == assign.chunks_size());
  if (!fits || std::any_of(updates.begin(), updates.end(), [](int64_t count) { return count < 0; })) {
    return Bad("assign.updates",
               absl::StrCat(updates.size(), " entries; allowed: none, or with the weights one of 0 or ",
                            "more for each of the ", assign.chunks_size(), " chunks"));
  }
  return updates;
}

// Of a Pull or a Snapshot.
template <typename Message>
absl::Status ReadChunks(const Message& read, const char* field, const DecodedRequest& message,
                        std::shared_ptr<const SharedRegion> region, const v1::JobDescription& job, uint32_t server,
                        const TableRules& tables, ReceivedRequest* received) {
  const v1::ExchangeRequest& header = message.header;
  const auto& chunks = read.chunks();
  PartitionRequest* const request = &received->request;
  if (!read.has_table() && (message.payload.size() != 0 || header.shared_size() != 0)) {
    return Bad("payload", absl::StrCat(message.payload.size(), " bytes and ", header.shared_size(),
                                       " entries in shared; only push_pull carries gradients"));
  }
  request->chunks.reserve(chunks.size());
  for (int i = 0; i < chunks.size(); ++i) {
    absl::Status status = CheckChunk(job, server, header.partition(), chunks.Get(i));
    if (!status.ok()) return Annotate(status, absl::StrCat(field, ".chunks[", i, "]"));
    if (IsShard(job.chunks(static_cast<int>(chunks.Get(i)))) && !read.has_table()) {
      return Bad(absl::StrCat(field, ".chunks[", i, "]"),
                 absl::StrCat(chunks.Get(i), " is a shard of a table, and ", field, ".table is absent"));
    }
    request->chunks.push_back(chunks.Get(i));
  }
  if (!read.has_table()) return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<const TableMessage>> table =
      ReadTable(read.table(), /*with_gradients=*/false, request->chunks, message, std::move(region), tables, job);
  if (!table.ok()) return Annotate(table.status(), field);
  received->table = *std::move(table);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReceivedRequest> ReadRequest(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                            const v1::JobDescription& job, uint32_t server,
                                            const PushHyperparameters::Rules& rules, const TableRules& tables) {
  const v1::ExchangeRequest& header = message.header;
  RUBATO_RETURN_IF_ERROR(CheckSender(header, job));
  RUBATO_RETURN_IF_ERROR(CheckSession(header, region.get()));
  ReceivedRequest received;
  PartitionRequest& request = received.request;
  request.task = header.task();
  request.generation = header.generation();
  switch (header.operation_case()) {
    case v1::ExchangeRequest::kPushPull: {
      request.kind = Kind::kPushPull;
      request.step = header.push_pull().step();
      received.in_shared_memory = header.shared_size() > 0;
      RUBATO_ASSIGN_OR_RETURN(received.gradient_bytes, ReadPush(message, std::move(region), job, server, rules, tables,
                                                                &request, &received.table));
      break;
    }
    case v1::ExchangeRequest::kPull:
      request.kind = Kind::kPull;
      request.step = header.pull().step();
      RUBATO_RETURN_IF_ERROR(
          ReadChunks(header.pull(), "pull", message, std::move(region), job, server, tables, &received));
      break;
    case v1::ExchangeRequest::kSnapshot:
      request.kind = Kind::kSnapshot;
      request.step = header.snapshot().at_step();
      received.slot = header.snapshot().slot();
      if (header.snapshot().has_table() && (request.step != -1 || received.slot != 0)) {
        return Bad("snapshot.at_step", absl::StrCat(request.step, " of slot ", received.slot,
                                                    "; allowed: -1 and 0, rows of a table as they are"));
      }
      RUBATO_RETURN_IF_ERROR(CheckSlot("snapshot.slot", received.slot, rules));
      RUBATO_RETURN_IF_ERROR(
          ReadChunks(header.snapshot(), "snapshot", message, std::move(region), job, server, tables, &received));
      break;
    case v1::ExchangeRequest::kAssign: {
      received.assigns = true;
      received.in_shared_memory = header.shared_size() > 0;
      RUBATO_ASSIGN_OR_RETURN(received.gradient_bytes, ReadAssign(message, std::move(region), job, server, &request));
      if (request.chunks.empty()) return Bad("assign.chunks", "none given; at least one is needed");
      received.slot = header.assign().slot();
      RUBATO_RETURN_IF_ERROR(CheckSlot("assign.slot", received.slot, rules));
      RUBATO_ASSIGN_OR_RETURN(received.updates, ReadUpdates(header.assign()));
      break;
    }
    case v1::ExchangeRequest::OPERATION_NOT_SET:
      return Bad("operation", "missing; allowed: push_pull, pull, snapshot, assign");
  }
  if (request.kind != Kind::kSnapshot && request.step < 0) {
    return Bad("step", absl::StrCat(request.step, "; allowed: 0 or more"));
  }
  return received;
}

}  // namespace rubato::server
