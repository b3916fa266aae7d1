// lockstep shard bench: how fast a set can be read, and what limits it.
#include "training/shard/bench.hpp"

#include <limits>
#include <memory>

#include "core/log.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"
#include "data/load/stage.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/memory.hpp"
#include "runtime/together.hpp"
#include "training/progress.hpp"
#include "training/shard/bench_stages.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

constexpr double most_seconds = 86400;
constexpr int n_repeats = 7;  // of each stage: the fewest that give a 95 % interval, plus one

struct LayoutWord {
  std::string_view name;
  data::ChannelOrder layout;
};
constexpr std::array<LayoutWord, 2> layouts{{{"nchw", data::ChannelOrder::nchw}, {"nhwc", data::ChannelOrder::nhwc}}};
constexpr std::array<std::string_view, 3> dtypes{"float32", "bfloat16", "stored"};

void check(const core::Flags& flags, BenchOptions& o) {
  if (flags.has("--epochs") && flags.has("--seconds"))
    core::fail_usage({.what = "a stage lasts either a time or a number of epochs",
                      .where = "--seconds, --epochs",
                      .expected = "one of the two",
                      .fix = "leave out one"});
  if (o.seconds.value <= 0)
    core::fail_usage({.what = "a stage that lasts no time", .where = "--seconds", .expected = "such as 3s", .fix = ""});
  if (o.seconds.value > most_seconds)
    core::fail_usage({.what = "a stage that lasts more than a day",
                      .where = "--seconds",
                      .expected = fmt::format("at most {:.0f}s", most_seconds),
                      .fix = ""});
  if (!o.augment.empty()) static_cast<void>(data::parse_augment(o.augment, "--augment"));
  if (!o.is_cold) return;
  if (o.cache == data::Cache::node)
    core::fail_usage({.what = "a set in memory is not cold",
                      .where = "--cold, --cache",
                      .expected = "--cache none or auto with --cold",
                      .fix = "leave out one"});
  o.cache = data::Cache::none;
}

/// One run of the benchmark.
class Bench {
 public:
  /// Collective.
  Bench(const BenchOptions& options, const runtime::Communicator& world, std::shared_ptr<const data::ShardSet> set)
      : options_{options}, world_{world}, stages_{options, world, std::move(set)} {}

  /// Collective: the report at rank 0.
  BenchReport run();

 private:
  [[nodiscard]] Budget budget() const;
  [[nodiscard]] int repeats() const { return options_.epochs > 0 ? static_cast<int>(options_.epochs) : n_repeats; }
  bool warm_up();
  void measure(Stage stage);
  [[nodiscard]] Work sum(const Work& mine) const;
  [[nodiscard]] BenchReport report(bool was_warmed, bool is_complete) const;

  const BenchOptions& options_;
  const runtime::Communicator& world_;
  BenchStages stages_;
  std::array<std::vector<Work>, all_stages.size()> works_{};  ///< of all ranks; at rank 0
};

Budget Bench::budget() const {
  if (options_.epochs > 0) return {};
  return {.time = {options_.seconds.value / n_repeats}, .repeats = !options_.is_cold};
}

// Collective. A set that does not fit into memory would evict itself.
bool Bench::warm_up() {
  const bool fits = stages_.stored().value < runtime::available_memory().value / 2;
  if (options_.is_cold || world_.any(!fits)) return false;
  runtime::together(world_, [this] { stages_.warm_up(); });
  return true;
}

// Collective: times of the slowest rank, amounts of all ranks; at rank 0.
Work Bench::sum(const Work& mine) const {
  Work sum;
  for (const Work& work : runtime::gather_values(world_, std::span{&mine, 1})) {
    sum.time_s = std::max(sum.time_s, work.time_s);
    sum.n_samples += work.n_samples;
    sum.bytes_stored += work.bytes_stored;
    sum.bytes_delivered += work.bytes_delivered;
  }
  return sum;
}

// Collective: an error of one rank is an error on all.
void Bench::measure(Stage stage) {
  runtime::together(world_, [this] {
    if (options_.is_cold) stages_.drop_caches();
  });
  Work mine;
  runtime::together(world_, [&] { mine = stages_.run(stage, budget()); });
  const Work work = sum(mine);
  if (work.n_samples > 0) works_[static_cast<std::size_t>(stage)].push_back(work);
}

BenchReport Bench::run() {
  Progress progress{"measuring", ProgressUnit::stages, world_.rank() == 0};
  const bool was_warmed = warm_up();
  const std::uint64_t n_all = all_stages.size() * static_cast<std::size_t>(repeats());
  std::uint64_t n_done = 0;
  for (int repeat = 0; repeat < repeats(); ++repeat) {
    for (const Stage stage : all_stages) {
      measure(stage);
      if (world_.any(!progress.update(++n_done, n_all))) return report(was_warmed, false);
    }
  }
  return report(was_warmed, true);
}

BenchReport Bench::report(bool was_warmed, bool is_complete) const {
  BenchReport report{.loader = stages_.loader_stats(),
                     .n_ranks = world_.n_ranks(),
                     .n_threads = stages_.n_threads(),
                     .n_samples = stages_.n_samples(),
                     .is_encoded = stages_.is_encoded(),
                     .was_warmed = was_warmed,
                     .is_complete = is_complete};
  for (const Stage stage : all_stages) {
    if (auto result = summarize(stage, works_[static_cast<std::size_t>(stage)])) report.stages.push_back(*result);
  }
  return report;
}

std::shared_ptr<const data::ShardSet> open(const BenchOptions& o, const std::string& folder) {
  auto set = std::make_shared<const data::ShardSet>(folder, o.split);
  if (set->n_samples() == 0)
    core::fail_usage({.what = fmt::format("the split to read of '{}' has no samples", o.folder),
                      .where = "--split",
                      .expected = "a split to read",
                      .fix = ""});
  return set;
}

int bench(const BenchOptions& o, const runtime::Session& session) {
  const runtime::Communicator& world = session.world();
  std::shared_ptr<const data::ShardSet> set;
  const auto complaint = core::complaint_of([&] {
    if (world.rank() == 0 && !o.json.empty()) core::check_writable(o.json, "--json");
    set = open(o, o.folder);
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  const auto unstaged = core::complaint_of([&] {
    if (!o.stage.empty()) set = open(o, data::stage(world, o.folder, o.stage));
  });
  if (const auto bad = session.agree(unstaged)) return core::to_int(*bad);
  std::unique_ptr<Bench> bench;
  const auto misfit = core::complaint_of([&] { bench = std::make_unique<Bench>(o, world, set); });
  if (const auto bad = session.agree(misfit)) return core::to_int(*bad);
  BenchReport report;
  const auto failure = core::complaint_of([&] { report = bench->run(); });
  if (const auto bad = session.agree(failure)) return core::to_int(*bad);
  const runtime::Environment environment = runtime::read_environment(world);
  const auto unprinted = core::complaint_of([&] {
    if (world.rank() == 0) core::print(describe(report));
  });
  const auto unwritten = core::complaint_of([&] {
    if (world.rank() != 0 || o.json.empty()) return;
    const std::string json = to_json(report, o, environment);
    core::write_whole(o.json, std::as_bytes(std::span{json}));
  });
  if (const auto bad = session.agree(unprinted ? unprinted : unwritten)) return core::to_int(*bad);
  const int signal = runtime::agree_on_interrupt(world);
  return signal == 0 ? core::to_int(core::ExitCode::ok) : 128 + signal;
}

}  // namespace

std::string_view name_of_layout(data::ChannelOrder layout) noexcept {
  return layout == data::ChannelOrder::nchw ? "nchw" : "nhwc";
}

constexpr std::string_view bench_help =
    R"(  lockstep shard bench d                            random order, batches of 64, float32; about 20 s
  lockstep shard bench d --nproc 4 --batch 256 --augment crop:28:4,flip,normalize:0.5:0.25
  lockstep shard bench d --cold --order sequential --cache none --json b.json

)";

Action declare_bench(core::Flags& flags) {
  flags.note(bench_help);
  auto o = std::make_shared<BenchOptions>();
  constexpr std::uint64_t one = 1;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  flags.word("FOLDER", o->folder);
  flags.heading("What is read");
  flags.text("--split NAME", o->split, {"train, val", "the first"});
  flags.number("--batch N", o->batch, one, most, "samples per batch, of all ranks together");
  flags.choice("--order O", "order", o->order, data::all_orders, "keyed, torch, blocked or sequential");
  flags.number("--window-chunks N", o->window_chunks, one, most, "blocked: mix samples within N chunks");
  flags.number("--seed N", o->seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
               "seed of order and augmentation");
  flags.text("--augment STEPS", o->augment,
             {"crop:SIZE[:PADDING], flip[:P], rrcrop:SIZE, resize:SIZE, centercrop:SIZE, normalize:MEAN:STD in this "
              "order, separated by commas",
              "none"});
  flags.value("--dtype T", {"float32, bfloat16 or stored", "float32; integers as stored"},
              [o](const std::string& text) { o->dtype = core::find_named(dtypes, text, "dtype", "--dtype"); });
  flags.value("--layout L", {"nchw or nhwc", name_of_layout(o->layout)}, [o](const std::string& text) {
    o->layout = core::find_named(layouts, text, "layout", "--layout").layout;
  });
  flags.heading("How it is read");
  flags.number("--threads N", o->threads, 0, 256,
               {"more threads for each rank, besides its own; 0: none", "the spare cores, at most 8"});
  flags.text("--stage FOLDER", o->stage, "copy the set to FOLDER, local to each node, and read the copy");
  flags.choice("--cache C", "cache", o->cache, data::all_caches,
               "auto: in memory once per node if it fits; none; node");
  flags.toggle("--cold", o->is_cold,
               {"drop the files from the page cache before each repeat", "warm: read once before"});
  flags.seconds("--seconds T", o->seconds, "time for each of five stages");
  flags.number("--epochs N", o->epochs, one, std::uint64_t{1000},
               {"passes over the whole split for each stage, instead", "none"});
  flags.text("--json F", o->json, "write all figures to F");
  flags.note(R"(
Each stage uses these threads and the rank's own:
  - copy: from memory into the cache; the other stages are compared with it (data that stay in a cache exceed it)
  - pread: reads the files only
  - read: with check sums and decompression
  - augment: samples in memory
  - loader: the whole path, as a trainer uses it
The stages alternate, seven times each. Figures are medians with their 95 % interval, if there are enough repeats. Rates
are those of all ranks together.
Memory: the loader's batches, and at most 0.5 GiB for the copy. With --cache auto or node, also the set once per node;
else up to 64 MiB of samples read ahead.
)");
  return {.check = [o, &flags] { check(flags, *o); },
          .run = [o](const runtime::Session& session) { return bench(*o, session); }};
}

}  // namespace lockstep::training::shard
