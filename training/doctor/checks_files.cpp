// Checks of data sets and of folders for files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "training/doctor/checks.hpp"
#include "training/doctor/files.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr double slow_GBps = 0.05;
constexpr double much_slower = 3;
constexpr std::uint64_t least_judged = 32'000'000;  ///< bytes: less is read too fast for a measurement

double read_GBps(const Facts& facts) {
  return core::gigabytes_per_second({facts.node.data.n_read}, {facts.node.data.seconds});
}

/// Whether the data read came from the disk.
std::string describe_cache(const SetFacts& set) {
  if (set.cached_percent < 0) return "maybe from the page cache: this file system does not report it";
  if (set.cached_percent < 0.5) return "not from the page cache";
  return fmt::format("{:.0f} % of it from the page cache", set.cached_percent);
}

std::string describe_speed(const Facts& facts) {
  return fmt::format("{:.2f} GB/s of {} in {}, {}", read_GBps(facts), core::format_decimal({facts.node.data.n_read}),
                     core::format_seconds({facts.node.data.seconds}), describe_cache(facts.node.data));
}

Finding judge_speed(const Facts& facts) {
  const SetFacts& set = facts.node.data;
  if (!set.complaint.empty()) return skip("the set cannot be read");
  if (!set.unread.empty())
    return {.verdict = Verdict::fail,
            .seen = set.unread,
            .fix = "run lockstep shard verify, which reads the whole set and names the damage"};
  if (set.n_read == 0 || set.seconds <= 0) return skip("the set has no samples");
  if (set.n_read < least_judged) return {.seen = describe_speed(facts) + "; too little data to judge"};
  if (read_GBps(facts) >= slow_GBps) return {.seen = describe_speed(facts)};
  return {.verdict = Verdict::warning,
          .seen = describe_speed(facts),
          .fix = "copy the set to a faster file system, or to each node: lockstep train --stage FOLDER"};
}

/// Whether one node reads much slower than another.
Finding compare_readers(const Job& job) {
  const std::vector<const Facts*> nodes = job.nodes();
  const auto [slowest, fastest] = std::ranges::minmax_element(nodes, {}, [](const Facts* f) { return read_GBps(*f); });
  Finding finding{.seen = fmt::format("slowest on {}: {}; fastest on {}: {}", (*slowest)->host,
                                      describe_speed(**slowest), (*fastest)->host, describe_speed(**fastest))};
  const std::uint64_t least = std::min((*slowest)->node.data.n_read, (*fastest)->node.data.n_read);
  if (least < least_judged || read_GBps(**slowest) * much_slower >= read_GBps(**fastest)) return finding;
  finding.verdict = Verdict::warning;
  finding.fix = "check the mount and network of the slow node, or exclude it (srun --exclude)";
  return finding;
}

Finding judge_set(const Facts& facts) {
  const SetFacts& set = facts.node.data;
  if (set.complaint.empty())
    return {.seen = fmt::format("{} samples of {}, on {}", set.n_samples, set.x,
                                set.file_system.empty() ? "an unknown file system" : set.file_system)};
  return {.verdict = Verdict::fail,
          .seen = set.complaint,
          .fix = set.fix.empty() ? "check the spelling, and that its file system is mounted there" : set.fix};
}

/// The first class that differs.
std::string describe_difference(const std::vector<std::string>& data, const std::vector<std::string>& val) {
  if (data.size() != val.size()) return fmt::format("{} classes in --data, {} in --val", data.size(), val.size());
  const auto [one, other] = std::ranges::mismatch(data, val);
  return fmt::format("class {} is '{}' in --data, '{}' in --val", one - data.begin(), *one, *other);
}

Finding judge_checkpoint_folder(const Job& job, const Facts& facts) {
  const FolderFacts& folder = facts.node.checkpoints;
  const std::string where = folder.path == job.request.checkpoints ? "" : fmt::format("'{}'", folder.path);
  if (!folder.complaint.empty())
    return {.verdict = Verdict::fail,
            .seen = fmt::format("cannot write in '{}': {}", folder.path, folder.complaint),
            .fix = "name a folder on a file system that all nodes may write to; check quotas with quota or lfs quota"};
  const std::string seen = fmt::format("writable{}, on {}", where.empty() ? "" : " in " + where,
                                       folder.file_system.empty() ? "an unknown file system" : folder.file_system);
  if (!folder.is_in_home || !folder.is_network) return {.seen = seen};
  return {.verdict = Verdict::warning,
          .seen = seen + ", in the home directory, which is slow and shared by all",
          .fix = "name a folder on the scratch file system"};
}

Finding judge_locks(const Facts& facts) {
  const FolderFacts& folder = facts.node.checkpoints;
  if (!folder.complaint.empty()) return skip("this folder is not writable");
  const std::string seen = fmt::format("flock {}, fcntl {}", folder.flock, folder.fcntl);
  if (folder.flock == "works" && folder.fcntl == "works") return {.seen = seen};
  return {.verdict = Verdict::warning,
          .seen = seen + ": two jobs could write the same files at once",
          .fix =
              "name a folder on a file system with locks (Lustre: mounted with -o flock); HDF5 of other programs can "
              "read files there with HDF5_USE_FILE_LOCKING=BEST_EFFORT"};
}

Finding judge_meeting(const Facts& facts) {
  const FolderFacts& folder = facts.node.checkpoints;
  if (folder.meeting.empty() || folder.meeting == "nothing to see") return skip("rank 0 cannot make a file there");
  if (folder.meeting == "seen") return {.seen = "all nodes see a file that rank 0 made"};
  return {.verdict = Verdict::fail,
          .seen = fmt::format("a file that rank 0 makes in '{}' is {}", folder.path, folder.meeting),
          .fix = "name a folder on a file system that all nodes share: all of them read and write checkpoints"};
}

std::uint64_t least_free(const Job& job) {
  std::uint64_t least = unlimited;
  for (const Facts* facts : job.nodes()) least = std::min(least, facts->node.checkpoints.free);
  return least;
}

}  // namespace

Finding check_temporary_folder(const Job& job) {
  return for_nodes(job, [](const Facts& facts) -> Finding {
    if (facts.temporary.empty() && facts.missing_temporary.empty()) return {.seen = "can be made"};
    if (facts.temporary.empty())
      return {
          .verdict = Verdict::warning,
          .seen = fmt::format("TMPDIR is '{}', which does not exist", facts.missing_temporary),
          .fix = "mkdir -p \"$TMPDIR\" on each node, or unset TMPDIR: MPI may create it, but other programs do not"};
    return {.verdict = Verdict::fail,
            .seen = fmt::format("MPI cannot keep its files in {}", facts.temporary),
            .fix = "unset TMPDIR, or name a folder of this node with room, for example /tmp"};
  });
}

Finding check_recipe(const Job& job) {
  if (!job.request.recipe) return skip("--recipe R is not given");
  if (job.misfit) {
    const core::Problem& problem = job.misfit->problem();
    return {.verdict = Verdict::fail,
            .seen = problem.what + (problem.where.empty() ? "" : fmt::format(" ({})", problem.where)),
            .fix = problem.fix.empty() ? problem.expected : problem.fix};
  }
  if (!job.need) return skip("the set cannot be read");
  return {.seen =
              fmt::format("{}: model {}, batch {}, a checkpoint of {}", job.need->recipe.name, job.need->recipe.model,
                          job.need->recipe.batch, core::format_decimal(job.need->checkpoint))};
}

Finding check_data(const Job& job) {
  if (job.request.data.empty()) return skip("--data SET is not given");
  Finding finding = for_nodes(job, judge_set);
  const SetFacts& set = job.ranks.front().node.data;
  if (finding.verdict == Verdict::ok)
    finding.seen += set.n_looked == set.n_files
                        ? fmt::format("; {} files of the right size", set.n_files)
                        : fmt::format("; {} of {} files checked, of the right size", set.n_looked, set.n_files);
  return finding;
}

Finding check_read_speed(const Job& job) {
  if (job.request.data.empty()) return skip("--data SET is not given");
  const Finding merged = for_nodes(job, judge_speed);
  if (merged.verdict != Verdict::ok || job.topology.n_nodes == 1) return merged;
  return compare_readers(job);
}

Finding check_classes(const Job& job) {
  if (job.request.data.empty() || job.request.val.empty()) return skip("--data SET and --val SET are not both given");
  const SetFacts &data = job.ranks.front().node.data, &val = job.ranks.front().node.val;
  if (!val.complaint.empty())
    return {.verdict = Verdict::fail,
            .seen = "--val: " + val.complaint,
            .fix = val.fix.empty() ? "check the spelling" : val.fix};
  if (!data.complaint.empty()) return skip("--data cannot be read");
  const std::string remedy =
      "pack or import both from folders with the same classes: lockstep shard stat shows what a set has";
  if (data.classes != val.classes)
    return {.verdict = Verdict::fail, .seen = describe_difference(data.classes, val.classes), .fix = remedy};
  if (data.x != val.x)
    return {.verdict = Verdict::fail,
            .seen = fmt::format("samples are {} in --data, {} in --val", data.x, val.x),
            .fix = remedy};
  return {.seen = fmt::format("the same {} in both", data.classes.size())};
}

Finding check_checkpoint_folder(const Job& job) {
  if (job.request.checkpoints.empty()) return skip("--checkpoints DIR is not given");
  return for_nodes(job, [&job](const Facts& facts) { return judge_checkpoint_folder(job, facts); });
}

Finding check_locks(const Job& job) {
  if (job.request.checkpoints.empty()) return skip("--checkpoints DIR is not given");
  return for_nodes(job, judge_locks);
}

Finding check_same_folder(const Job& job) {
  if (job.request.checkpoints.empty()) return skip("--checkpoints DIR is not given");
  if (job.topology.n_nodes == 1) return skip("one node");
  return for_nodes(job, judge_meeting);
}

Finding check_room(const Job& job) {
  if (job.request.checkpoints.empty()) return skip("--checkpoints DIR is not given");
  const FolderFacts& folder = job.ranks.front().node.checkpoints;
  if (folder.size == 0) return skip("the file system does not report free space");
  const std::uint64_t left = least_free(job), n = job.request.n_checkpoints;
  const std::string has = fmt::format("{} free", core::format_decimal({left}));
  if (!job.need) return {.seen = fmt::format("{}; --recipe R adds the size of a checkpoint", has)};
  const std::uint64_t each = job.need->checkpoint.value, needed = each * n;
  const std::string text = fmt::format("{}, {} needed for {} checkpoint{} of {}", has, core::format_decimal({needed}),
                                       n, n == 1 ? "" : "s", core::format_decimal({each}));
  if (left >= needed) return {.seen = text};
  return {.verdict = Verdict::fail,
          .seen = text,
          .fix = "free space there, keep fewer checkpoints (--keep), or name another folder"};
}

}  // namespace lockstep::training::doctor
