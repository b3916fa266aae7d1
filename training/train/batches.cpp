#include "training/train/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/flags.hpp"
#include "core/suggest.hpp"
#include "data/read/id_counts.hpp"
#include "data/read/shard_set.hpp"
#include "nn/models.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// Numbers of any stored type in one of the two types an executor takes.
class Converter {
 public:
  Converter(core::DType stored, bool is_whole) : stored_{stored}, is_whole_{is_whole} {}

  std::span<const std::byte> convert(std::span<const std::byte> values) {
    if (stored_ == (is_whole_ ? core::DType::int64 : core::DType::float32)) return values;
    return is_whole_ ? to(values, whole_) : to(values, floats_);
  }

 private:
  template <class To>
  std::span<const std::byte> to(std::span<const std::byte> values, std::vector<To>& out) {
    core::visit(stored_, [&]<class From>(std::type_identity<From>) {
      out.resize(values.size() / sizeof(From));
      for (std::size_t i = 0; i < out.size(); ++i) {
        From value;
        std::memcpy(&value, values.data() + i * sizeof(From), sizeof(From));
        if constexpr (std::is_same_v<From, core::float16> || std::is_same_v<From, core::bfloat16>)
          out[i] = static_cast<To>(static_cast<float>(value));
        else
          out[i] = static_cast<To>(value);
      }
    });
    return std::as_bytes(std::span{out});
  }

  core::DType stored_;
  bool is_whole_;
  std::vector<std::int64_t> whole_{};
  std::vector<float> floats_{};
};

data::LoaderOptions options_for(const runtime::Communicator& world, const Recipe& recipe, const data::SetSpec& spec,
                                bool is_evaluation) {
  data::LoaderOptions options = loader_options(recipe, is_evaluation, world.n_ranks());
  options.augment.dtype = nn::find_model(recipe.model).takes_ids ? spec.x.dtype : core::DType::float32;
  return options;
}

/// Samples of a rank in a batch.
std::uint64_t most_of(const Recipe& recipe, std::uint64_t n_samples, int world_ranks) {
  const auto n_ranks = static_cast<std::uint64_t>(world_ranks);
  return (std::min(recipe.batch, n_samples) + n_ranks - 1) / n_ranks;
}

DataInfo info_of(const data::SetSpec& spec, const data::Augment& augment, const std::vector<std::uint64_t>& n_ids,
                 std::uint64_t n_samples, std::string_view split = {}, std::vector<std::string> splits = {}) {
  return {.spec = spec,
          .input = augment.output().shape,
          .n_ids = n_ids,
          .n_samples = n_samples,
          .split = std::string{split},
          .splits = std::move(splits)};
}

/// What both kinds have in common: the conversion to what executors take.
class ConvertedBatches : public Batches {
 public:
  ConvertedBatches(DataInfo info, core::DType x_dtype)
      : info_{std::move(info)},
        x_{x_dtype, !info_.n_ids.empty()},
        y_{info_.spec.y.dtype, !info_.spec.classes.empty()} {}

  [[nodiscard]] const DataInfo& info() const noexcept final { return info_; }

 protected:
  const data::Batch* converted(const data::Batch& batch) {
    batch_ = batch;
    batch_.x = x_.convert(batch.x);
    batch_.y = y_.convert(batch.y);
    return &batch_;
  }

 private:
  DataInfo info_;
  Converter x_;
  Converter y_;
  data::Batch batch_{};
};

class ShardBatches final : public ConvertedBatches {
 public:
  ShardBatches(const data::ShardSet& set, std::string_view split, const std::vector<std::uint64_t>& n_ids,
               std::unique_ptr<data::Loader> loader, std::uint64_t most)
      : ConvertedBatches{info_of(set.spec(), loader->augment(), n_ids, set.n_samples(), split,
                                 core::names_of(set.manifest().splits)),
                         loader->augment().output().dtype},
        loader_{std::move(loader)},
        most_{most} {
    for (const data::ShardEntry& shard : set.manifest().split(split, set.folder()).shards) stored_bytes_ += shard.bytes;
  }

  [[nodiscard]] std::uint64_t n_batches() const noexcept override { return loader_->n_batches(); }
  [[nodiscard]] std::uint64_t most() const noexcept override { return most_; }
  [[nodiscard]] std::uint64_t stored_bytes() const noexcept override { return stored_bytes_; }
  [[nodiscard]] std::optional<data::LoaderStats> loader_stats() const override { return loader_->stats(); }
  void begin_epoch(std::uint64_t epoch) override { loader_->begin_epoch(epoch); }
  [[nodiscard]] const data::Ledger& ledger() const noexcept override { return loader_->ledger(); }

  [[nodiscard]] const data::Batch* next() override {
    const data::Batch* const batch = loader_->next();
    return batch == nullptr ? nullptr : converted(*batch);
  }

 private:
  std::unique_ptr<data::Loader> loader_;
  std::uint64_t most_;
  std::uint64_t stored_bytes_ = 0;
};

std::vector<std::uint64_t> synthetic_ids(const Recipe& recipe) {
  if (!nn::find_model(recipe.model).takes_ids) return {};
  const data::SynthOptions options = synth_options(recipe);
  return {options.users, options.items};
}

/// Made from the seed whenever they are asked for; or, to measure what is left without data, made once.
class SyntheticBatches final : public ConvertedBatches {
 public:
  SyntheticBatches(const runtime::Communicator& world, const Recipe& recipe, std::unique_ptr<data::Source> source,
                   std::size_t split, const data::LoaderOptions& options, std::unique_ptr<data::Augment> augment)
      : ConvertedBatches{info_of(source->spec(), *augment, synthetic_ids(recipe), source->splits()[split].n_samples),
                         augment->output().dtype},
        source_{std::move(source)},
        split_{split},
        augment_{std::move(augment)},
        sampler_{info().n_samples, options.sampler},
        plan_{data::batch_plan(options, info().n_samples, world.rank(), world.n_ranks())},
        is_repeated_{recipe.synthetic_steps > 0 && !options.is_evaluation} {
    stored_.resize(info().spec.x.bytes());
    scratch_.resize(augment_->scratch_bytes());
  }

  [[nodiscard]] std::uint64_t n_batches() const noexcept override { return plan_.n_batches(); }
  [[nodiscard]] std::uint64_t most() const noexcept override { return plan_.most(); }
  [[nodiscard]] const data::Ledger& ledger() const noexcept override { return ledger_; }

  void begin_epoch(std::uint64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
    ledger_ = {};
    sampler_.begin_epoch(epoch);
  }

  [[nodiscard]] const data::Batch* next() override {
    if (next_ == plan_.n_batches()) return nullptr;
    const std::uint64_t number = next_++;
    const data::Share share = plan_.share(number);
    if (!is_repeated_ || ids_.size() != share.n) make(share);
    for (const std::uint64_t id : ids_) ledger_.add(id);
    return converted({.number = number, .n_global = share.n_global, .n = share.n, .x = x_, .y = y_, .ids = ids_});
  }

 private:
  void make(const data::Share& share) {
    const std::uint64_t x_bytes = augment_->output().bytes(), y_bytes = info().spec.y.bytes();
    ids_.resize(share.n);
    x_.resize(share.n * x_bytes);
    y_.resize(share.n * y_bytes);
    for (std::uint64_t i = 0; i < share.n; ++i) {
      ids_[i] = sampler_.at((share.first + i * share.stride) % info().n_samples);
      source_->read(split_, ids_[i], 1, stored_, std::span{y_}.subspan(i * y_bytes, y_bytes));
      augment_->apply(stored_, 0, 0, epoch_, ids_[i], std::span{x_}.subspan(i * x_bytes, x_bytes), scratch_);
    }
  }

  std::unique_ptr<data::Source> source_;
  std::size_t split_;
  std::unique_ptr<data::Augment> augment_;
  data::Sampler sampler_;
  data::BatchPlan plan_;
  bool is_repeated_;
  std::uint64_t epoch_ = 0;
  std::uint64_t next_ = 0;
  data::Ledger ledger_{};
  std::vector<std::uint64_t> ids_{};
  std::vector<std::byte> stored_{}, scratch_{}, x_{}, y_{};
};

[[noreturn]] void fail_no_training_split(const Recipe& recipe, const std::vector<std::string>& splits) {
  core::fail_usage(
      {.what = fmt::format("the set has no split '{}' to train on, only {}", recipe.train_split, core::join(splits)),
       .where = fmt::format("train-split, {}", recipe.synthetic ? "synthetic" : recipe.data),
       .expected = "a split of the set",
       .fix = fmt::format("--train-split {}; or lockstep shard split makes one for training and one for "
                          "evaluation; --evaluate-only needs none for training",
                          splits.empty() ? "NAME" : splits.front())});
}

std::unique_ptr<Batches> open_synthetic(const runtime::Communicator& world, const Recipe& recipe, bool is_evaluation) {
  std::unique_ptr<data::Source> source = synthesizer_of(recipe).open(synth_options(recipe));
  check_set(recipe, source->spec());
  const std::string& wanted = is_evaluation ? recipe.val_split : recipe.train_split;
  const std::vector<data::SourceSplit> splits = source->splits();
  const auto split = std::ranges::find(splits, wanted, &data::SourceSplit::name);
  if (split == splits.end() || split->n_samples == 0) {
    if (is_evaluation) return nullptr;
    fail_no_training_split(recipe, core::names_of(splits));
  }
  data::LoaderOptions options = options_for(world, recipe, source->spec(), is_evaluation);
  if (options.is_evaluation || options.sampler.order == data::Order::blocked)
    options.sampler.order = options.is_evaluation ? data::Order::sequential : data::Order::keyed;
  auto augment = std::make_unique<data::Augment>(source->spec(), options.augment);
  return std::make_unique<SyntheticBatches>(
      world, recipe, std::move(source), static_cast<std::size_t>(split - splits.begin()), options, std::move(augment));
}

std::unique_ptr<Batches> open_split(const runtime::Communicator& world, const Recipe& recipe, const std::string& folder,
                                    const data::Manifest& manifest, const std::string& split,
                                    const std::vector<std::uint64_t>& n_ids, bool is_evaluation) {
  auto set = std::make_shared<const data::ShardSet>(folder, manifest, split);
  auto loader = std::make_unique<data::Loader>(world, set, options_for(world, recipe, set->spec(), is_evaluation));
  const std::uint64_t most = most_of(recipe, set->n_samples(), world.n_ranks());
  return std::make_unique<ShardBatches>(*set, split, n_ids, std::move(loader), most);
}

}  // namespace

OpenBatches open_batches(const runtime::Communicator& world, const Recipe& recipe, bool is_trained, const Fit& fit,
                         const std::function<void()>& on_progress) {
  OpenBatches open;
  if (recipe.synthetic) {
    if (is_trained) open.training = open_synthetic(world, recipe, false);
    if (!recipe.val_split.empty()) open.evaluation = open_synthetic(world, recipe, true);
    return open;
  }
  const data::Manifest manifest = data::read_manifest(recipe.data, world);
  const std::vector<std::string> splits = core::names_of(manifest.splits);
  const auto has = [&splits](const std::string& split) { return std::ranges::find(splits, split) != splits.end(); };
  const bool is_evaluated = !recipe.val_split.empty() && has(recipe.val_split);
  // A set of one split, such as MNIST's test files alone, is trained on whatever that is called.
  const bool is_only = splits.size() == 1 && recipe.train_split == Recipe{}.train_split;
  const std::string train_split = is_only ? splits.front() : recipe.train_split;
  if (is_trained && !has(train_split)) fail_no_training_split(recipe, splits);
  if (!is_trained && !is_evaluated) return open;
  check_set(recipe, manifest.spec);
  const bool takes_ids = nn::find_model(recipe.model).takes_ids;
  if (!takes_ids && !recipe.stage.empty()) {
    const data::Split& split = manifest.split(is_trained ? train_split : recipe.val_split, recipe.data);
    const data::Augment augment{manifest.spec, options_for(world, recipe, manifest.spec, !is_trained).augment};
    fit(info_of(manifest.spec, augment, {}, split.n_samples), most_of(recipe, split.n_samples, world.n_ranks()));
  }
  const std::string folder =
      recipe.stage.empty() ? recipe.data : data::stage(world, recipe.data, recipe.stage, on_progress);
  std::vector<std::uint64_t> n_ids;
  if (takes_ids) n_ids = data::count_ids(world, folder, manifest, on_progress);
  if (is_trained) open.training = open_split(world, recipe, folder, manifest, train_split, n_ids, false);
  if (is_evaluated) open.evaluation = open_split(world, recipe, folder, manifest, recipe.val_split, n_ids, true);
  return open;
}

std::optional<DataRecord> gather_data(const runtime::Communicator& world, const Recipe& recipe, const Batches* training,
                                      const Batches* evaluation) {
  if (recipe.synthetic) return std::nullopt;
  DataRecord all{.is_cached = true};
  for (const Batches* const batches : {training, evaluation}) {
    if (batches == nullptr) continue;
    const data::LoaderStats mine = *batches->loader_stats();
    for (const data::LoaderStats& stats : runtime::gather_values(world, std::span{&mine, 1})) {
      all.read.value += stats.bytes_read;
      all.n_chunks += stats.n_chunks;
      all.n_crc_failures += stats.n_crc_failures;
      all.is_cached = all.is_cached && stats.is_cached;
    }
    if (batches == training && recipe.order == "blocked") all.mixing = mine.mixing;
  }
  return all;
}

std::uint64_t n_epoch_samples(const Recipe& recipe, const Batches& batches, int n_ranks) noexcept {
  if (recipe.drop_last) return batches.n_batches() * recipe.batch;
  const std::uint64_t n = batches.info().n_samples,
                      ranks = recipe.order == "torch" ? static_cast<std::uint64_t>(n_ranks) : 1;
  return (n + ranks - 1) / ranks * ranks;
}

}  // namespace lockstep::training
