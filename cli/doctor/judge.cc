#include "cli/doctor/judge.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace rubato {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
// Sockets, logs and libraries of a task that has no peers.
constexpr int64_t kFilesOfItsOwn = 64;
constexpr int64_t kEnoughFiles = 1024;
constexpr absl::Duration kFineClock = absl::Microseconds(10);
constexpr double kSlowDisk = 50e6;
constexpr double kSlowLoopback = 500e6;
// What a line of 1 Gbit/s carries, less its headers, in both directions.
constexpr double kSlowNetwork = 100e6;
constexpr absl::Duration kLongRoundTrip = absl::Milliseconds(2);

Finding Ok(std::string subject, std::string text) { return {Verdict::kOk, std::move(subject), std::move(text), ""}; }

std::string Megabytes(double bytes_per_second) { return absl::StrFormat("%.0f MB/s", bytes_per_second / 1e6); }

// What the transport allows a step.
std::string StepText(const ExchangeFacts& exchange, const JobNeeds& needs) {
  if (needs.weight_bytes == 0 || exchange.bytes_per_second <= 0) return "";
  const double seconds = 2 * static_cast<double>(needs.weight_bytes) / exchange.bytes_per_second;
  return absl::StrFormat("; a worker's push and pull of %.1f MiB of weights takes %.1f ms at this rate",
                         static_cast<double>(needs.weight_bytes) / kMiB, seconds * 1e3);
}

std::string ExchangeText(const ExchangeFacts& exchange, const JobNeeds& needs) {
  return absl::StrFormat("%s pushed and pulled, round trip %.0f us%s", Megabytes(exchange.bytes_per_second),
                         absl::ToDoubleMicroseconds(exchange.round_trip), StepText(exchange, needs));
}

}  // namespace

Finding JudgeCpu(const CpuFacts& cpu) {
  const std::string widest = cpu.instruction_sets.empty() ? "baseline" : cpu.instruction_sets.back();
  Finding finding = Ok("cpu", absl::StrFormat("%s, %d of %d cores; kernels compiled for %s, the widest is taken",
                                              cpu.model.empty() ? "a processor without a name" : cpu.model,
                                              cpu.allowed_cores, cpu.cores, absl::StrJoin(cpu.instruction_sets, ", ")));
  if (widest == "baseline" || widest == "sse4.2") {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "without AVX2 updates and codecs run at a fraction of the speed; take another machine";
  } else if (cpu.allowed_cores < 2) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "with one core, tasks of this machine share it; allow more, or start fewer tasks here";
  }
  return finding;
}

Finding JudgeDevice(const absl::StatusOr<std::string>& description) {
  if (description.ok()) return Ok("device", absl::StrCat("a worker computes on ", *description));
  return {Verdict::kProblem, "device", std::string(description.status().message()),
          "set training.device to CPU, or mend what is missing"};
}

Finding JudgeMemory(const MemoryFacts& memory, const JobNeeds& needs) {
  const auto available = static_cast<double>(memory.available_bytes);
  Finding finding = Ok("memory", absl::StrFormat("%.1f of %.1f GiB can be had", available / kGiB,
                                                 static_cast<double>(memory.total_bytes) / kGiB));
  if (needs.server_bytes == 0 || memory.available_bytes == 0) return finding;
  absl::StrAppendFormat(&finding.text, "; the job's servers together hold %.1f MiB",
                        static_cast<double>(needs.server_bytes) / kMiB);
  if (needs.server_bytes > memory.available_bytes) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "this machine alone cannot hold them; put servers on several machines";
  }
  return finding;
}

Finding JudgeOpenFiles(const ResourceLimit& limit, const JobNeeds& needs) {
  if (limit.now < 0) return Ok("open files", "no limit");
  Finding finding = Ok("open files", absl::StrFormat("at most %d", limit.now));
  // A coordinator has a connection to each task, a task to each server, and some files are mapped.
  const int64_t needed = kFilesOfItsOwn + 4 * int64_t{needs.tasks};
  if (limit.now < needed) {
    finding.verdict = Verdict::kProblem;
    finding.next_step = absl::StrFormat("tasks need about %d: raise it with ulimit -n", needed);
  } else if (limit.now < kEnoughFiles) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = absl::StrFormat("raise it to %d with ulimit -n, for jobs of many tasks", kEnoughFiles);
  }
  return finding;
}

Finding JudgeLockedMemory(const ResourceLimit& limit) {
  // Page-locked memory of a GPU comes from its driver, which this limit does not bind, so a low one is no fault.
  if (limit.now < 0) return Ok("locked memory", "no limit");
  return Ok("locked memory",
            absl::StrFormat("at most %.0f KiB, of which Rubato needs none", static_cast<double>(limit.now) / 1024));
}

Finding JudgeSharedMemory(const absl::Status& tried) {
  if (tried.ok()) return Ok("shared memory", "tasks of this machine can share tensors");
  return {Verdict::kWarning, "shared memory", std::string(tried.message()),
          "tasks of this machine will use TCP; allow sealed memory files (memfd_create) to have them share"};
}

Finding JudgeClock(const ClockFacts& clock) {
  Finding finding =
      Ok("clock", absl::StrFormat("monotonic resolution %s, smallest step %s", absl::FormatDuration(clock.resolution),
                                  absl::FormatDuration(clock.step)));
  if (clock.resolution > kFineClock || clock.step > kFineClock) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "times in traces and reports are that coarse; choose a finer clock source";
  }
  if (!clock.synchronised.has_value()) {
    absl::StrAppend(&finding.text, "; whether it follows NTP is not known");
  } else if (*clock.synchronised) {
    absl::StrAppend(&finding.text, "; follows NTP, to ",
                    absl::FormatDuration(absl::Trunc(clock.error, absl::Microseconds(1))));
  } else {
    absl::StrAppend(&finding.text, "; does not follow NTP");
    // Nothing but the times in logs depends on it: leases and rules use intervals, and traces measure the difference.
    if (finding.next_step.empty()) {
      finding.verdict = Verdict::kWarning;
      finding.next_step = "times in logs of several machines may disagree; run an NTP client";
    }
  }
  return finding;
}

Finding JudgePort(int port, const absl::Status& tried) {
  const std::string subject = absl::StrCat("port ", port == 0 ? "any" : absl::StrCat(port));
  if (tried.ok()) return Ok(subject, "free");
  return {Verdict::kProblem, subject, std::string(tried.message()),
          "stop what listens there, or give the coordinator another port with --listen"};
}

Finding JudgeDisk(const absl::StatusOr<DiskFacts>& disk, const JobNeeds& needs) {
  if (!disk.ok()) {
    return {Verdict::kProblem, "disk", std::string(disk.status().message()),
            "choose a run directory that can be written"};
  }
  const auto free = static_cast<double>(disk->free_bytes);
  Finding finding = Ok("disk", absl::StrFormat("%s written to %s, %.1f GiB free", Megabytes(disk->bytes_per_second),
                                               disk->directory, free / kGiB));
  // The first and the last checkpoint.
  const int64_t needed = 2 * needs.server_bytes;
  if (disk->free_bytes < needed) {
    finding.verdict = Verdict::kProblem;
    finding.next_step =
        absl::StrFormat("checkpoints of the job need up to %.1f MiB", static_cast<double>(needed) / kMiB);
  } else if (disk->bytes_per_second < kSlowDisk) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "checkpoints and update logs wait for this disk; choose a faster one";
  }
  return finding;
}

Finding JudgeLoopback(const absl::StatusOr<ExchangeFacts>& exchange, const JobNeeds& needs) {
  if (!exchange.ok()) {
    return {Verdict::kProblem, "loopback", std::string(exchange.status().message()),
            "tasks of this machine cannot reach each other; look at its firewall and the loopback device"};
  }
  Finding finding = Ok("loopback", ExchangeText(*exchange, needs));
  if (exchange->bytes_per_second < kSlowLoopback) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "slow for one machine: is it busy?";
  }
  return finding;
}

Finding JudgePeer(const std::string& peer, const absl::StatusOr<ExchangeFacts>& exchange, const JobNeeds& needs) {
  const std::string subject = absl::StrCat("peer ", peer);
  if (!exchange.ok()) {
    return {Verdict::kProblem, subject, std::string(exchange.status().message()),
            "start `rubato doctor --serve` there, and let its port through the firewall"};
  }
  Finding finding = Ok(subject, ExchangeText(*exchange, needs));
  if (exchange->bytes_per_second < kSlowNetwork) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "less than a line of 1 Gbit/s carries; encode what is sent with compression.push and .pull";
  } else if (exchange->round_trip > kLongRoundTrip) {
    finding.verdict = Verdict::kWarning;
    finding.next_step = "every step of SYNC waits for a round trip; prefer SSP or ASYNC, or tasks that are closer";
  }
  return finding;
}

}  // namespace rubato
