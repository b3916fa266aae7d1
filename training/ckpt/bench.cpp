// lockstep ckpt bench: how fast checkpoints are written and read where they will lie, and what that place can do.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/folder.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/weights.hpp"
#include "checkpoint/writer.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"
#include "core/shortage.hpp"
#include "core/statistics.hpp"
#include "core/table.hpp"
#include "core/temporary.hpp"
#include "io/file.hpp"
#include "metrics/fingerprint.hpp"
#include "runtime/environment.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/memory.hpp"
#include "runtime/together.hpp"
#include "training/ckpt/verbs.hpp"
#include "training/progress.hpp"

namespace lockstep::training::ckpt {
namespace {

namespace fs = std::filesystem;
using BenchJson = nlohmann::ordered_json;  // keys in the order written here

struct BenchArguments {
  std::string folder;
  std::string like{};
  core::Bytes bytes{std::uint64_t{256} << 20};
  std::uint64_t repeats = 7;  // the fewest that give a 95 % interval, and one
  std::string json{};
};

/// In the order they are measured.
enum class BenchStage { write, save, copy, read, load };

struct BenchStageInfo {
  std::string_view name;  ///< in results
  std::string_view title;
  BenchStage limit;  ///< what it is set against
};

constexpr std::array<BenchStageInfo, 5> bench_stages{{
    {"write", "plain write, fsync", BenchStage::write},
    {"save", "checkpoint", BenchStage::write},
    {"copy", "training stands still", BenchStage::write},
    {"read", "plain read", BenchStage::read},
    {"load", "verify and read", BenchStage::read},
}};

/// Each a matrix of rows of 4 KiB: 4 MiB, the last one fewer.
std::vector<checkpoint::Box> tensors_of_size(core::Bytes bytes) {
  constexpr std::uint64_t n_columns = 1024, most_rows = 1024;
  std::vector<checkpoint::Box> tensors;
  std::uint64_t n_rows = std::max<std::uint64_t>(bytes.value / (n_columns * sizeof(float)), 1);
  for (; n_rows > 0; n_rows -= tensors.back().n_rows)
    tensors.push_back(checkpoint::whole(fmt::format("parameter/layer{}.weight", tensors.size()),
                                        {std::min(n_rows, most_rows), n_columns}));
  return tensors;
}

core::Bytes bytes_of(const std::vector<checkpoint::Box>& tensors) {
  std::uint64_t n_elements = 0;
  for (const checkpoint::Box& box : tensors) n_elements += box.n_elements();
  return {n_elements * sizeof(float)};
}

/// Numbers that no file system can compress.
void fill_randomly(std::span<float> values, std::uint64_t seed) {
  std::uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15;
  for (float& value : values) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    value = static_cast<float>(static_cast<std::int64_t>(state)) * 0x1p-63F;
  }
}

class CheckpointBench {
 public:
  /// Collective. Throws core::Error, the same on all ranks, as run().
  CheckpointBench(const BenchArguments& arguments, const runtime::Communicator& world);
  ~CheckpointBench();
  CheckpointBench(const CheckpointBench&) = delete;
  CheckpointBench& operator=(const CheckpointBench&) = delete;

  /// Collective. Ends early if a signal asks for it.
  void run();
  /// On rank 0.
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::string to_json(const runtime::Environment& environment) const;

 private:
  void require_memory() const;
  void share_out(std::vector<checkpoint::Box> tensors);
  void repeat();
  void measure(BenchStage stage, const std::function<void()>& work);
  void write_plainly(const std::string& path) const;
  void read_plainly(const std::string& path);
  void load(const std::string& path);
  [[nodiscard]] bool is_complete() const { return times_s_.back().size() == arguments_.repeats; }
  [[nodiscard]] core::Summary summary(const BenchStageInfo& stage) const {
    return core::summarize(times_s_[static_cast<std::size_t>(&stage - bench_stages.data())]);
  }
  [[nodiscard]] double percent(const BenchStageInfo& stage) const {
    return 100 * summary(bench_stages[static_cast<std::size_t>(stage.limit)]).median / summary(stage).median;
  }

  const BenchArguments& arguments_;
  const runtime::Communicator& world_;
  std::string folder_{};
  core::Temporary temporary_{};  ///< what folder_ is, on rank 0
  std::size_t n_tensors_ = 0;
  core::Bytes bytes_{};  ///< of all ranks
  std::vector<checkpoint::Box> boxes_{};
  std::vector<std::size_t> firsts_{};  ///< element of each in values_
  std::size_t n_mine_ = 0;
  std::vector<float> values_{};  ///< filled when the place is known to be good
  std::vector<float> copy_{};
  std::optional<checkpoint::RankFile> file_{};
  std::array<std::vector<double>, bench_stages.size()> times_s_{};  ///< of the slowest rank; on rank 0
};

CheckpointBench::CheckpointBench(const BenchArguments& arguments, const runtime::Communicator& world)
    : arguments_{arguments}, world_{world}, bytes_{arguments.bytes} {
  std::vector<checkpoint::Box> tensors;
  if (!arguments.like.empty()) tensors = checkpoint::open_newest(world, arguments.like, "--like").tensors();
  if (!tensors.empty()) bytes_ = bytes_of(tensors);
  require_memory();
  if (tensors.empty()) tensors = tensors_of_size(arguments.bytes);
  bytes_ = bytes_of(tensors);
  share_out(std::move(tensors));
  const std::string path = (fs::absolute(arguments.folder) / "ckpt-bench").string();
  runtime::together(world, [&] {
    if (world.rank() != 0) return;
    checkpoint::check_room(path, "files to measure with", bytes_, "FOLDER");
    core::remove_leftovers(arguments.folder, "ckpt-bench");
    temporary_ = core::make_temporary_folder(path);
    if (temporary_) return;
    core::refuse_shortage(fmt::format("cannot write to '{}'", arguments.folder), "FOLDER", errno);
    core::fail_usage({.what = fmt::format("cannot write to '{}': {}", arguments.folder, core::system_reason(errno)),
                      .where = "FOLDER",
                      .expected = "a folder that can be written to, on the file system of the checkpoints",
                      .fix = "make the folder, or name another one"});
  });
  folder_ = world.broadcast(temporary_.path);
}

CheckpointBench::~CheckpointBench() {
  std::error_code ignored;
  if (temporary_) fs::remove_all(temporary_.path, ignored);
}

// Collective.
void CheckpointBench::require_memory() const {
  runtime::together(world_, [&] {
    const core::Bytes mine{bytes_.value / static_cast<std::uint64_t>(world_.n_ranks())};
    const core::Bytes available = runtime::available_memory();
    if (mine.value < available.value / 2) return;
    core::fail_usage({.what = fmt::format("two copies of a rank's {} do not fit into the {} of free memory",
                                          core::format_decimal(mine), core::format_decimal(available)),
                      .where = arguments_.like.empty() ? "--bytes" : "--like",
                      .expected = "fewer bytes, or more ranks on more nodes",
                      .fix = ""});
  });
}

// Collective. Rows of each tensor are shared out evenly.
void CheckpointBench::share_out(std::vector<checkpoint::Box> tensors) {
  n_tensors_ = tensors.size();
  for (checkpoint::Box& box : tensors) {
    box.rows = core::partition({0, box.n_rows}, static_cast<std::size_t>(world_.n_ranks()),
                               static_cast<std::size_t>(world_.rank()));
    if (box.rows.empty()) continue;
    firsts_.push_back(n_mine_);
    n_mine_ += box.n_elements();
    boxes_.push_back(std::move(box));
  }
}

void CheckpointBench::measure(BenchStage stage, const std::function<void()>& work) {
  world_.barrier();
  const core::Stopwatch watch;
  work();
  const double mine_s = watch.elapsed().value;
  const std::vector<double> all_s = runtime::gather_values(world_, std::span{&mine_s, 1});
  if (world_.rank() == 0) times_s_[static_cast<std::size_t>(stage)].push_back(*std::ranges::max_element(all_s));
}

void CheckpointBench::write_plainly(const std::string& path) const {
  const core::Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  std::span<const std::byte> left = std::as_bytes(std::span{values_});
  while (file && !left.empty()) {
    const ssize_t n = ::write(file.get(), left.data(), left.size());
    if (n < 0 && errno != EINTR) break;
    left = left.subspan(n < 0 ? 0 : static_cast<std::size_t>(n));
  }
  if (!file || !left.empty() || ::fsync(file.get()) != 0)
    core::fail_system(fmt::format("cannot write '{}': {}", path, core::system_reason(errno)));
}

/// As many bytes as there are values, if not these.
void CheckpointBench::read_plainly(const std::string& path) {
  if (!copy_.empty()) io::File{path}.read_at(0, std::as_writable_bytes(std::span{copy_}));
}

void CheckpointBench::load(const std::string& path) {
  const checkpoint::Checkpoint from = checkpoint::open_checkpoint(world_, path);
  runtime::together(world_, [&] {
    std::span<float> left{copy_};
    for (const checkpoint::Box& box : boxes_) {
      from.read(box, left.first(box.n_elements()));
      left = left.subspan(box.n_elements());
    }
  });
}

// Collective. Each write finds what the one before has left: one copy of the values at most is on the disk.
void CheckpointBench::repeat() {
  const std::string plain = fmt::format("{}/plain-{:05}", folder_, world_.rank());
  const std::string saved = folder_ + "/step-000000001";
  const std::string mine = fmt::format("{}/{}", saved, checkpoint::file_name_of(world_.rank()));
  const auto fill_from = [this](const std::vector<float>& all) {
    return [this, &all](std::size_t i, std::span<float> values) {
      std::ranges::copy(std::span{all}.subspan(firsts_[i], values.size()), values.begin());
    };
  };
  const auto remove = [&] {
    runtime::together(world_, [&] { world_.rank() == 0 ? checkpoint::remove_checkpoint(saved) : void(); });
  };
  measure(BenchStage::write, [&] { runtime::together(world_, [&] { write_plainly(plain); }); });
  runtime::together(world_, [&] { fs::remove(plain); });
  measure(BenchStage::save,
          [&] { checkpoint::write_checkpoint(world_, saved, "{}", boxes_, fill_from(values_), file_); });
  remove();
  std::optional<checkpoint::BackgroundSave> save;
  measure(BenchStage::copy, [&] {
    copy_ = values_;
    save.emplace(world_, saved, "{}", boxes_, fill_from(copy_), file_);
  });
  while (!save->advance()) continue;
  save.reset();
  measure(BenchStage::read, [&] { runtime::together(world_, [&] { read_plainly(mine); }); });
  measure(BenchStage::load, [&] { load(saved); });
  runtime::together(world_, [&] {
    if (std::ranges::equal(std::as_bytes(std::span{copy_}), std::as_bytes(std::span{values_}))) return;
    throw core::Error{core::ExitCode::failed, {.what = "what was read is not what was written", .where = saved}};
  });
  remove();
}

void CheckpointBench::run() {
  runtime::together(world_, [&] {
    values_.resize(n_mine_);
    fill_randomly(values_, static_cast<std::uint64_t>(world_.rank()));
  });
  Progress progress{"measuring", ProgressUnit::stages, world_.rank() == 0};
  for (std::uint64_t i = 1; i <= arguments_.repeats; ++i) {
    repeat();
    if (world_.any(!progress.update(i, arguments_.repeats))) return;
  }
}

std::string CheckpointBench::describe() const {
  const core::Table table{{{.header = "", .width = 24, .align = core::Align::left},
                           {.header = "time p50", .width = 10},
                           {.header = "[95 %]", .width = 22},
                           {.header = "rate", .unit = "GB/s", .width = 8},
                           {.header = "of plain", .unit = "%", .width = 9}},
                          "  "};
  std::string text = fmt::format("{} in {} tensor{}, {} rank{}, {} repeats in '{}'\n", core::format_decimal(bytes_),
                                 n_tensors_, n_tensors_ == 1 ? "" : "s", world_.n_ranks(),
                                 world_.n_ranks() == 1 ? "" : "s", times_s_.back().size(), arguments_.folder);
  if (!is_complete()) text += "Interrupted: fewer repeats than asked for.\n";
  text += table.header();
  for (const BenchStageInfo& stage : bench_stages) {
    const core::Summary times = summary(stage);
    const auto seconds = [](double value) { return core::format_seconds({value}); };
    text += table.row(
        {std::string{stage.title}, seconds(times.median),
         times.median_95 ? fmt::format("[{}, {}]", seconds(times.median_95->low), seconds(times.median_95->high)) : "",
         core::format_number(core::gigabytes_per_second(bytes_, {times.median})),
         fmt::format("{:.0f}", percent(stage))});
  }
  return text;
}

std::string CheckpointBench::to_json(const runtime::Environment& environment) const {
  BenchJson stages = BenchJson::array();
  for (const BenchStageInfo& stage : bench_stages) {
    const core::Summary times = summary(stage);
    stages.push_back({{"stage", stage.name},
                      {"repeats", times.n},
                      {"time_s_p50", times.median},
                      {"time_s_p50_low", times.median_95 ? BenchJson(times.median_95->low) : BenchJson()},
                      {"time_s_p50_high", times.median_95 ? BenchJson(times.median_95->high) : BenchJson()},
                      {"GBps", core::gigabytes_per_second(bytes_, {times.median})},
                      {"plain_percent", percent(stage)}});
  }
  BenchJson meta{{"started", environment.time},
                 {"folder", arguments_.folder},
                 {"tensors", n_tensors_},
                 {"bytes", bytes_.value},
                 {"ranks", world_.n_ranks()}};
  meta.update(metrics::to_json(environment));
  return metrics::dump({{"schema", "lockstep.ckpt_bench"},
                        {"schema_version", 1},
                        {"complete", is_complete()},
                        {"meta", meta},
                        {"stages", stages}},
                       2) +
         "\n";
}

int bench(const BenchArguments& arguments, const runtime::Session& session) {
  const runtime::Communicator& world = session.world();
  std::optional<CheckpointBench> bench;
  const auto failure = core::complaint_of([&] {  // the same on all ranks
    runtime::together(world, [&] {
      if (world.rank() == 0 && !arguments.json.empty()) core::check_writable(arguments.json, "--json");
    });
    bench.emplace(arguments, world);
    bench->run();
  });
  if (const auto bad = session.agree(failure)) return core::to_int(*bad);
  const runtime::Environment environment = runtime::read_environment(world);
  const auto unwritten = core::complaint_of([&] {
    if (world.rank() != 0) return;
    core::print(bench->describe());
    if (arguments.json.empty()) return;
    const std::string json = bench->to_json(environment);
    core::write_whole(arguments.json, std::as_bytes(std::span{json}));
  });
  if (const auto bad = session.agree(unwritten)) return core::to_int(*bad);
  const int signal = runtime::agree_on_interrupt(world);
  return signal == 0 ? core::to_int(core::ExitCode::ok) : 128 + signal;
}

}  // namespace

constexpr std::string_view bench_help =
    R"(  lockstep ckpt bench /scratch/me                       measure on the file system of /scratch/me
  lockstep ckpt bench /scratch/me --like r --nproc 4    with tensors like those of run r

Writes and reads checkpoints in a temporary folder in FOLDER, which it removes. It also times the same bytes without a
format: one write and one fsync of each rank, and one read. Values are random; each rank has its part of every tensor,
in its own file. Times are those of the slowest rank, as medians with their 95 % interval. If memory allows, files are
read back from the page cache. In a training with --save-every, training pauses while a checkpoint is copied, and
continues while it is written.

)";

Action declare_bench(core::Flags& flags) {
  flags.note(bench_help);
  auto arguments = std::make_shared<BenchArguments>();
  flags.word("FOLDER", arguments->folder);
  flags.text("--like FOLDER", arguments->like, "tensors of this checkpoint, or of a run's newest");
  flags.bytes("--bytes N", arguments->bytes, "N bytes in tensors of 4 MiB, instead");
  flags.number("--repeats N", arguments->repeats, std::uint64_t{1}, std::uint64_t{1000},
               "repeat everything N times, alternating");
  flags.text("--json F", arguments->json, "write all figures to F");
  return {.check =
              [arguments, &flags] {
                if (!flags.has("--like") || !flags.has("--bytes")) return;
                core::fail_usage({.what = "both a size and a checkpoint, which has one",
                                  .where = "--like, --bytes",
                                  .expected = "one of the two",
                                  .fix = "leave out one"});
              },
          .run = [arguments](const runtime::Session& session) { return bench(*arguments, session); }};
}

}  // namespace lockstep::training::ckpt
