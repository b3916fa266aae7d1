#include "data/write/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/pending.hpp"
#include "data/write/doubts.hpp"
#include "data/write/pack_pass.hpp"
#include "data/write/pack_plan.hpp"
#include "data/write/remaining.hpp"
#include "io/digest.hpp"
#include "io/hdf5.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"

namespace lockstep::data {
namespace {

void check_spec(const SetSpec& spec) {
  for (const ArraySpec* array : {&spec.x, &spec.y})
    if (array->bytes() == 0) core::fail_usage({.what = "a sample without values", .expected = "shapes without a 0"});
  if (!spec.classes.empty() && core::is_floating(spec.y.dtype))
    core::fail_usage({.what = "classes for labels that are not whole numbers"});
  std::set<std::string_view> classes;
  for (const std::string& name : spec.classes)
    if (!classes.insert(name).second)
      core::fail_usage({.what = fmt::format("two classes are called '{}'", name),
                        .expected = "a name for each class that no other has",
                        .fix = "give one another name"});
  (void)serialize(Manifest{.spec = spec});  // whether all names can be written
}

// From a few samples all over the set: how many go into a shard must be known before all are read.
std::uint64_t usual_encoded_bytes(Source& source) {
  constexpr std::uint64_t n_probes = 64;
  std::vector<std::byte> y(source.spec().y.bytes());
  std::uint64_t n = 0, bytes = 0;
  const std::vector<SourceSplit> splits = source.splits();
  for (std::size_t split = 0; split < splits.size(); ++split) {
    const std::uint64_t n_here = std::min(splits[split].n_samples, n_probes);
    for (std::uint64_t i = 0; i < n_here; ++i) try {
        bytes += source.read_encoded(split, splits[split].n_samples / n_here * i, y).size();
        ++n;
      } catch (const BadSample&) {
        continue;  // reported where it is packed
      }
  }
  return n > 0 ? bytes / n : 0;
}

/// Sends a list to rank 0 and joins it there.
template <class T>
std::vector<T> gather_lists(const runtime::Communicator& world, const std::vector<T>& mine) {
  std::string bytes(mine.size() * sizeof(T), '\0');
  if (!mine.empty()) std::memcpy(bytes.data(), mine.data(), bytes.size());
  std::vector<T> all;
  for (const std::string& part : world.gather(bytes)) {
    const std::size_t n = all.size();
    all.resize(n + part.size() / sizeof(T));
    if (!part.empty()) std::memcpy(all.data() + n, part.data(), part.size());
  }
  return all;
}

// Collective: the records of all ranks on all ranks, sorted.
std::vector<BadRecord> share_bad(const runtime::Communicator& world, const std::vector<BadRecord>& mine) {
  std::string text;
  for (const BadRecord& bad : mine) text += fmt::format("{} {} {}{}", bad.split, bad.index, bad.text, '\0');
  const std::string all = world.broadcast(fmt::format("{}", fmt::join(world.gather(text), "")));
  std::set<BadRecord> records;
  for (std::size_t at = 0; at < all.size();) {
    char* rest = nullptr;
    BadRecord bad;
    bad.split = std::strtoull(all.data() + at, &rest, 10);
    bad.index = std::strtoull(rest, &rest, 10);
    bad.text = rest + 1;
    at = static_cast<std::size_t>(rest + 1 - all.data()) + bad.text.size() + 1;
    records.insert(std::move(bad));
  }
  return {records.begin(), records.end()};
}

// A name that `lockstep shard` gives to shards and the files beside them: a manifest may name anything.
bool is_name_of_ours(std::string_view file) {
  constexpr std::string_view end = ".h5";
  if (file == ids_file_name) return true;
  if (!file.ends_with(end)) return false;
  file.remove_suffix(end.size());
  const std::size_t dash = file.rfind('-');
  return dash != std::string_view::npos && file.size() - dash > 5 &&
         file.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
}

// The files that are removed with an old set. Only a set may be replaced: anything else is there by mistake.
std::set<std::string> files_of_old_set(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;  // if it cannot be examined, creating the new folder says why
  if (!fs::exists(folder, error) || (fs::is_directory(folder, error) && fs::is_empty(folder, error))) return {};
  try {
    std::set<std::string> files{std::string{manifest_name}};
    for (const ManifestFile& item : read_manifest(folder).files())
      if (is_name_of_ours(item.file)) files.insert(item.file);
    return files;
  } catch (const core::Error& unknown) {
    if (unknown.code() == core::ExitCode::system) throw;
    core::fail_usage({.what = fmt::format("'{}' is not replaced: {}", folder, unknown.problem().what),
                      .where = "--out, --force",
                      .expected = "a new folder, or one with an intact manifest, which lists what --force may remove",
                      .fix = "name another folder, or remove this one by hand"});
  }
}

// False if the problem does not name `folder`.
bool rename_in(core::Problem& problem, const std::string& folder, const std::string& name) {
  for (std::string* text : {&problem.what, &problem.where}) {
    const std::size_t at = text->find(folder);
    if (at == std::string::npos) continue;
    text->replace(at, folder.size(), name);
    return true;
  }
  return false;
}

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
}

ExtraEntry write_extra(const std::string& folder, const ExtraFile& extra) {
  const std::string path = fmt::format("{}/{}", folder, extra.name);
  io::Hdf5File file = io::Hdf5File::create(path);
  for (const auto& [name, values] : extra.datasets)
    file.create_dataset(name, core::DType::int64, {values.size()}, 0, io::Filter::none)
        .write_all(std::as_bytes(std::span{values}));
  file.close();
  core::sync_to_disk(path);
  return {.file = extra.name, .bytes = std::filesystem::file_size(path), .digest = io::digest_of_file(path)};
}

/// All of one call of pack().
class Packing {
 public:
  Packing(Source& source, const PackOptions& options, const runtime::Communicator& world, const PackProgress& progress)
      : world_{world}, progress_{progress}, job_{source, options, {}, {}, 0} {}

  PackResult run() {
    prepare();
    if (!write_shards()) return {.is_stopped = true};
    PackResult result;
    runtime::together(world_, [&] {
      if (world_.rank() == 0) name_place([&] { result = finish(); });
    });
    return result;
  }

 private:
  void prepare();
  void make_folder();
  bool write_shards();
  bool pass(const std::vector<ShardTask>& tasks);
  void leave_out(std::vector<BadRecord> bad);
  void name_place(const std::function<void()>& write) const;
  PackResult finish();
  [[nodiscard]] std::string room_needed() const;
  Manifest make_manifest() const;
  void remove_leftovers() const;
  std::vector<Remark> remarks();
  SetFacts collect_facts();

  const runtime::Communicator& world_;
  PackProgress progress_;
  PackJob job_;
  std::optional<PackPlan> plan_;
  std::optional<core::PendingFolder> pending_;               ///< on rank 0
  std::vector<BadRecord> bad_;                               ///< left out
  std::vector<BadRecord> found_bad_;                         ///< in the last pass
  using ShardKey = std::pair<std::uint64_t, std::uint64_t>;  ///< split and number
  std::map<ShardKey, ShardRecord> shards_;                   ///< on rank 0
  std::map<ShardKey, std::vector<SampleDigest>> digests_;    ///< likewise
};

// Collective.
void Packing::prepare() {
  const PackOptions& options = job_.options;
  std::uint64_t encoded_bytes = 0;
  runtime::together(world_, [&] {
    check_spec(job_.source.spec());
    if (world_.rank() == 0 && job_.source.spec().is_encoded()) encoded_bytes = usual_encoded_bytes(job_.source);
  });
  encoded_bytes = runtime::broadcast_value(world_, encoded_bytes);
  runtime::together(world_, [&] {
    job_.layout = make_layout(job_.source.spec(), options.shard_bytes.value, options.chunk_bytes.value, options.filter,
                              options.level, encoded_bytes);
    plan_.emplace(job_.source.splits(), options, job_.layout.shard_samples, bad_);
    std::uint64_t n_samples = 0;
    for (const OutputSplit& split : plan_->splits()) n_samples += split.selection.n();
    if (options.compares) job_.compared_one_in = compared_one_in(n_samples);
  });
  make_folder();
}

// Collective.
void Packing::make_folder() {
  runtime::together(world_, [&] {
    if (world_.rank() != 0) return;
    const PackOptions& options = job_.options;
    pending_.emplace(options.out, options.replace ? core::OldFiles{files_of_old_set(options.out)} : std::nullopt,
                     options.replace ? "--out, --force" : "--out");
  });
  job_.folder = world_.broadcast(pending_ ? pending_->path() : std::string{});
  runtime::together(world_, [&] {
    if (std::filesystem::is_directory(job_.folder)) return;
    core::fail_usage({.what = fmt::format("rank {} on {} does not see the folder that rank 0 made", world_.rank(),
                                          runtime::host_name()),
                      .where = "--out",
                      .expected = "a folder on a file system that all nodes share"});
  });
}

// Collective: false if it was stopped.
bool Packing::write_shards() {
  std::vector<ShardTask> tasks = plan_->tasks();
  while (true) {
    if (!pass(tasks)) return false;
    if (found_bad_.empty()) return true;
    const PackPlan before = *std::move(plan_);
    runtime::together(world_, [&] { leave_out(found_bad_); });
    tasks = plan_->tasks_since(before, found_bad_);
  }
}

// Collective: one pass over `tasks`; false if it was stopped.
bool Packing::pass(const std::vector<ShardTask>& tasks) {
  PassResult mine;
  runtime::together(world_, [&] {
    name_place([&] {
      mine = PackPass{job_, *plan_, progress_}.run(tasks, static_cast<std::size_t>(world_.rank()),
                                                   static_cast<std::size_t>(world_.n_ranks()));
    });
  });
  if (world_.any(mine.is_stopped)) return false;
  for (const ShardRecord& record : gather_lists(world_, mine.shards)) {
    shards_[{record.split, record.number}] = record;
    digests_.erase({record.split, record.number});
  }
  for (const SampleDigest& sample : gather_lists(world_, mine.digests))
    digests_[{sample.split, sample.shard}].push_back(sample);
  found_bad_ = share_bad(world_, mine.bad);
  return true;
}

void Packing::leave_out(std::vector<BadRecord> bad) {
  bad_.insert(bad_.end(), bad.begin(), bad.end());
  std::sort(bad_.begin(), bad_.end());
  plan_.emplace(job_.source.splits(), job_.options, job_.layout.shard_samples, bad_);
  require_samples(*plan_, bad_);
}

// An error of `write` names the folder the user gave: the temporary one is gone when the message is read.
void Packing::name_place(const std::function<void()>& write) const {
  try {
    write();
  } catch (const core::Error& error) {
    core::Problem problem = error.problem();
    if (error.code() != core::ExitCode::system || !rename_in(problem, job_.folder, job_.options.out)) throw;
    const std::string full = core::system_reason(ENOSPC);
    if (problem.what.find(full) != std::string::npos)
      problem = {.what = fmt::format("cannot write '{}': {}", job_.options.out, full),
                 .where = "--out",
                 .expected = room_needed(),
                 .fix = "make room there (inodes too: df -i), or give --out on another file system"};
    throw core::Error{error.code(), problem, error.location()};
  }
}

std::string Packing::room_needed() const {
  const SetSpec& spec = job_.source.spec();
  if (spec.is_encoded()) return "room for all image files";
  const std::uint64_t chunk = job_.layout.chunk_samples;  // the last one of a shard is stored whole
  std::uint64_t n_samples = 0;
  for (const OutputSplit& split : plan_->splits()) {
    const std::uint64_t n = split.selection.n(), in_shards = n / job_.layout.shard_samples * job_.layout.shard_samples;
    n_samples += in_shards + (n - in_shards <= chunk ? n - in_shards : (n - in_shards + chunk - 1) / chunk * chunk);
  }
  constexpr double structures = 1.03;  // of HDF5, and the index
  const double bytes = structures * static_cast<double>(n_samples) *
                       static_cast<double>(spec.x.bytes() + spec.y.bytes() + sizeof(std::uint64_t));
  return fmt::format("about {} free{}", core::format_decimal({static_cast<std::uint64_t>(bytes)}),
                     job_.layout.filter == io::Filter::none ? "" : ", minus what compression saves");
}

// On rank 0.
PackResult Packing::finish() {
  PackResult result;
  remove_leftovers();
  result.manifest = make_manifest();
  for (const ExtraFile& extra : job_.source.extra_files())
    result.manifest.extras.push_back(write_extra(job_.folder, extra));
  for (const BadRecord& bad : bad_) result.bad.push_back(bad.text);
  result.remarks = remarks();
  result.manifest.notes = job_.source.earlier_notes();
  for (const Remark& remark : result.remarks) add_once(result.manifest.notes, line_of(remark));
  const std::string text = serialize(result.manifest);
  const std::string path = fmt::format("{}/{}", job_.folder, manifest_name);
  (void)parse_manifest(text, path);  // what cannot be read is not written
  core::write_whole(path, std::as_bytes(std::span{text}));
  pending_->commit();
  return result;
}

// Describes the shards of the last plan.
Manifest Packing::make_manifest() const {
  Manifest manifest{
      .spec = job_.source.spec(), .filter = job_.layout.filter, .chunk_samples = job_.layout.chunk_samples};
  for (const OutputSplit& split : plan_->splits()) manifest.splits.push_back({split.name, split.selection.n(), {}});
  for (const ShardTask& task : plan_->tasks()) {
    const ShardRecord& record = shards_.at({task.split, task.place.number});
    manifest.splits[task.split].shards.push_back({.file = task.place.file_name(),
                                                  .n_samples = record.n_samples,
                                                  .bytes = record.bytes,
                                                  .digest = {record.digest.begin(), record.digest.end()},
                                                  .index = record.index,
                                                  .index_crc = static_cast<std::uint32_t>(record.index_crc)});
  }
  return manifest;
}

// What an earlier plan, with more samples, has made beyond the last one.
void Packing::remove_leftovers() const {
  std::set<std::string> files;
  for (const ShardTask& task : plan_->tasks()) files.insert(task.place.file_name());
  for (const auto& file : std::filesystem::directory_iterator{job_.folder})
    if (!files.contains(file.path().filename().string())) std::filesystem::remove(file.path());
}

// On rank 0: of the source, and of what became of its samples.
std::vector<Remark> Packing::remarks() {
  std::vector<Remark> remarks = job_.source.remarks();
  Tally all{};
  for (const ShardTask& task : plan_->tasks()) add(all, shards_.at({task.split, task.place.number}).tally);
  const auto append = [&](std::vector<Remark> more) { remarks.insert(remarks.end(), more.begin(), more.end()); };
  append(job_.source.remarks_on(all));
  append(remarks_on_classes(job_.source.spec().classes));
  SetFacts facts = collect_facts();
  append(remarks_on_values(facts));
  if (job_.options.compares) append(remarks_on_samples(facts));
  if (!bad_.empty())
    append({left_out(fmt::format("{} damaged sample{}, as --skip-bad asks; the first is number {} of {}", bad_.size(),
                                 bad_.size() == 1 ? "" : "s", bad_.front().index,
                                 job_.source.splits().at(bad_.front().split).name))});
  append(remarks_on_lost_classes(job_.folder, make_manifest(), bad_));
  return remarks;
}

// On rank 0: of the shards of the last plan. Their digests are taken.
SetFacts Packing::collect_facts() {
  SetFacts facts{.spec = job_.source.spec(), .one_in = job_.compared_one_in};
  for (const OutputSplit& split : plan_->splits())
    facts.splits.push_back({split.name, split.selection.n(), {}, {}, {}});
  for (const ShardTask& task : plan_->tasks()) {
    const ShardRecord& record = shards_.at({task.split, task.place.number});
    SplitFacts& split = facts.splits[task.split];
    add(split.x, record.x);
    add(split.y, record.y);
    add(split.blank, record.blank);
    std::vector<SampleDigest> digests = std::move(digests_[{task.split, task.place.number}]);
    facts.digests.insert(facts.digests.end(), digests.begin(), digests.end());
  }
  digests_.clear();
  facts.name_of = [this](std::size_t split, std::uint64_t index) {
    return job_.source.name_of(plan_->splits()[split].source, index);
  };
  return facts;
}

}  // namespace

PackResult pack(Source& source, const PackOptions& options, const runtime::Communicator& world,
                const PackProgress& progress) {
  return Packing{source, options, world, progress}.run();
}

}  // namespace lockstep::data
