#include "training/run/compat.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "training/run/text.hpp"

namespace lockstep::training {
namespace {

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::uint64_t global_batch(const CompatRun& run) {
  return std::accumulate(run.batches.begin(), run.batches.end(), std::uint64_t{0});
}

/// Joins `line_of(rank)` of all ranks.
template <class LineOf>
std::string of_all_ranks(const CompatRun& run, LineOf line_of) {
  std::string text;
  for (std::size_t rank = 0; rank < run.hosts.size(); ++rank) text += line_of(rank);
  return text;
}

// PyTorch's tutorial series as HiPerGator and RunPod teach it: single_gpu.py, multigpu.py, multigpu_torchrun.py.
namespace toy {

std::string epoch_begin(const CompatRun& run, std::uint64_t epoch) {
  return of_all_ranks(run, [&](std::size_t rank) {
    return fmt::format("[GPU{}] Epoch {} | Batchsize: {} | Steps: {}\n", rank, epoch, run.batches[rank], run.n_steps);
  });
}

std::string saved(std::uint64_t epoch, std::string_view path) {
  return fmt::format("Epoch {} | Training checkpoint saved at {}\n", epoch, path);
}

}  // namespace toy

// RunPod's neuralRecSys.py.
namespace movielens {

std::string epoch_end(const CompatRun&, const CompatEpoch& e) {
  if (!e.evaluation_loss) return {};
  return fmt::format("Epoch {} | Train Loss: {:.4f} | Val Loss: {:.4f}\n", e.epoch, e.loss, *e.evaluation_loss);
}

}  // namespace movielens

// NCSA Delta's pytorch_distributed_training.py. Its epochs count from 1.
namespace delta {

std::string start(const CompatRun& run) {
  const auto n_on_host = [&](std::size_t rank) {
    return std::count(run.hosts.begin(), run.hosts.end(), run.hosts[rank]);
  };
  std::string text = of_all_ranks(run, [&](std::size_t rank) {
    return fmt::format("Hello from rank {} of {} on {} where there are {} allocated GPUs per node.\n", rank,
                       run.hosts.size(), run.hosts[rank], n_on_host(rank));
  });
  text += "Group initialized? True\n";
  return text + of_all_ranks(run, [&](std::size_t rank) {
           return fmt::format("host: {}, rank: {}, local_rank: {}\n", run.hosts[rank], rank, run.local_ranks[rank]);
         });
}

std::string step(const CompatRun& run, std::uint64_t epoch, std::uint64_t step, double loss) {
  return fmt::format("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}\n", epoch + 1, step * global_batch(run),
                     run.n_train, percent(step, run.n_steps), loss);
}

std::string epoch_end(const CompatRun& run, const CompatEpoch& e) {
  if (!e.evaluation_loss || !e.evaluation_top1) return {};
  return fmt::format("\nTest set: Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)\n\n", *e.evaluation_loss,
                     *e.evaluation_top1, run.n_evaluation, percent(*e.evaluation_top1, run.n_evaluation));
}

}  // namespace delta

// NCAR Derecho's main.py (in 2024 resnet_train.py).
namespace ncar {

std::string epoch_begin(const CompatRun& run, std::uint64_t epoch) {
  return of_all_ranks(run, [&](std::size_t rank) {
    return fmt::format("Local Rank: {}, GPU: {}, Epoch: {}, Training ...\n", run.local_ranks[rank], rank, epoch);
  });
}

/// The tutorial leaves out the first epoch, because it includes the warm-up.
std::string epoch_end(const CompatRun& run, const CompatEpoch& e) {
  std::string text;
  if (e.epoch > 0 && e.n_steps > 0) {
    text = fmt::format("num_steps_per_gpu: {}, avg_step_time: {:.4f}\n", run.n_steps,
                       e.time.value / static_cast<double>(e.n_steps));
  }
  if (e.evaluation_top1 && run.n_evaluation > 0) {
    const std::string rule(75, '-');
    text +=
        fmt::format("{}\nEpoch: {}, Accuracy: {}\n{}\n", rule, e.epoch,
                    python_text(static_cast<double>(*e.evaluation_top1) / static_cast<double>(run.n_evaluation)), rule);
  }
  return text;
}

std::string end(const CompatRun&, const CompatEnd& e) {
  if (e.epoch_times.size() < 2) return {};
  double sum_s = 0;
  for (std::size_t epoch = 1; epoch < e.epoch_times.size(); ++epoch) sum_s += e.epoch_times[epoch].value;
  return fmt::format("Average epoch time: {}\n", python_text(sum_s / static_cast<double>(e.epoch_times.size() - 1)));
}

}  // namespace ncar

// NCAR Derecho's resnet_fsdp_training.py. Its epochs count from 1.
namespace ncar_fsdp {

std::string epoch_end(const CompatRun&, const CompatEpoch& e) {
  return fmt::format("  Epoch {:3d}  loss={:.4f}  acc={:.1f}%  time={:.1f}s\n", e.epoch + 1, e.loss, e.top1_percent,
                     e.time.value);
}

std::string end(const CompatRun& run, const CompatEnd& e) {
  if (!e.evaluation_top1) return {};
  return fmt::format("  Test accuracy: {:.1f}%\n", percent(*e.evaluation_top1, run.n_evaluation));
}

}  // namespace ncar_fsdp

// KAUST Ibex's ddp/scripts/train.py. Its epochs count from 1.
namespace kaust {

std::string start(const CompatRun& run) {
  return fmt::format(
      "[Rank 0] Using DATA_DIR={}\n[Rank 0] Train size (global): {}\n[Rank 0] Val size   (global): {}\n"
      "[Rank 0] World size: {}\n[Rank 0] Per-GPU batch size: {}\n[Rank 0] Global batch size: {}\n",
      run.data, run.n_train, run.n_evaluation, run.hosts.size(), run.batches.empty() ? 0 : run.batches.front(),
      global_batch(run));
}

std::string epoch_end(const CompatRun& run, const CompatEpoch& e) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();  // for an epoch without evaluation
  return fmt::format(
      "Epoch [{}/{}] LR: {:.6f} | Loss (train, val): {:.3f}, {:.3f} | Accuracy (train, val): {:.2f}%, {:.2f}% | "
      "Throughput: {:.1f} img/s\n",
      e.epoch + 1, run.n_epochs, e.learning_rate, e.loss, e.evaluation_loss.value_or(unknown), e.top1_percent,
      e.evaluation_top1 ? percent(*e.evaluation_top1, run.n_evaluation) : unknown, e.samples_per_s);
}

std::string end(const CompatRun&, const CompatEnd& e) {
  return fmt::format("Finished Training\nTotal execution time = {:.3f} sec\nMax memory used by tensors = {} bytes\n",
                     e.time.value, e.peak_bytes);
}

}  // namespace kaust

constexpr CompatStyle toy_style{.recipe = "toy",
                                .tutorial = "the PyTorch series of UF HiPerGator and RunPod",
                                .on_epoch_begin = toy::epoch_begin,
                                .on_saved = toy::saved};
constexpr CompatStyle delta_style{.recipe = "mnist_cnn",
                                  .tutorial = "DistributedTraining of NCSA Delta",
                                  .step_interval = 10,
                                  .on_start = delta::start,
                                  .on_step = delta::step,
                                  .on_epoch_end = delta::epoch_end};

constexpr CompatStyle named(CompatStyle style, std::string_view recipe) {
  style.recipe = recipe;
  return style;
}

constexpr std::array styles{toy_style,
                            delta_style,
                            named(delta_style, "digits"),
                            CompatStyle{.recipe = "cifar_resnet18",
                                        .tutorial = "the FSDP example of NCAR Derecho",
                                        .on_epoch_end = ncar_fsdp::epoch_end,
                                        .on_end = ncar_fsdp::end},
                            CompatStyle{.recipe = "resnet50_synthetic",
                                        .tutorial = "the DDP example of NCAR Derecho",
                                        .on_epoch_begin = ncar::epoch_begin,
                                        .on_epoch_end = ncar::epoch_end,
                                        .on_end = ncar::end},
                            CompatStyle{.recipe = "tinyimagenet_resnet50",
                                        .tutorial = "the DDP example of KAUST Ibex",
                                        .on_start = kaust::start,
                                        .on_epoch_end = kaust::epoch_end,
                                        .on_end = kaust::end},
                            CompatStyle{.recipe = "movielens",
                                        .tutorial = "the recommender of RunPod's series",
                                        .on_epoch_begin = toy::epoch_begin,
                                        .on_epoch_end = movielens::epoch_end,
                                        .on_saved = toy::saved}};

}  // namespace

std::span<const CompatStyle> compat_styles() noexcept { return styles; }

const CompatStyle* find_compat_style(std::string_view recipe) noexcept {
  for (const CompatStyle& style : styles)
    if (style.recipe == recipe) return &style;
  return nullptr;
}

const CompatStyle& require_compat_style(std::string_view recipe) {
  if (const CompatStyle* const style = find_compat_style(recipe)) return *style;
  std::vector<std::string_view> names;
  for (const CompatStyle& style : styles) names.push_back(style.recipe);
  core::fail_usage({.what = fmt::format("the recipe {} has no tutorial whose lines --compat could print", recipe),
                    .where = "--compat",
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .fix = "leave out --compat"});
}

CompatLog::CompatLog(const CompatStyle& style, std::string data, core::Printer& printer)
    : style_{style}, printer_{printer} {
  run_.data = std::move(data);
}

void CompatLog::started(const StartRecord& record) {
  run_.hosts = record.hosts;
  run_.local_ranks = record.local_ranks;
  run_.batches = record.rank_batches;
  run_.n_train = record.n_samples;
  run_.n_evaluation = record.n_evaluation;
  run_.n_epochs = record.n_epochs;
  run_.n_steps = record.n_epoch_steps;
  if (style_.on_start != nullptr) printer_.print(style_.on_start(run_));
}

void CompatLog::epoch_begun(const Position& at) {
  if (style_.on_epoch_begin != nullptr) printer_.print(style_.on_epoch_begin(run_, at.epoch - 1));
}

void CompatLog::step_agreed(const StepRecord& record) {
  if (style_.on_step == nullptr || record.step % style_.step_interval != 0) return;
  printer_.print(style_.on_step(run_, record.epoch, record.step, record.loss));
}

void CompatLog::epoch_over(const EpochRecord& record) {
  CompatEpoch epoch{.epoch = record.at.epoch - 1,
                    .learning_rate = record.learning_rate,
                    .loss = record.loss,
                    .top1_percent = record.top1_percent.value_or(0),
                    .time = record.time,
                    .n_steps = record.n_steps,
                    .samples_per_s = record.samples_per_s};
  if (record.evaluation) {
    epoch.evaluation_loss = record.evaluation->loss;
    if (record.evaluation->top1_percent) end_.evaluation_top1 = epoch.evaluation_top1 = record.evaluation->n_top1;
  }
  end_.epoch_times.push_back(record.time);
  if (style_.on_epoch_end != nullptr) printer_.print(style_.on_epoch_end(run_, epoch));
}

void CompatLog::saved(const SaveRecord& record) {
  if (style_.on_saved != nullptr && record.is_due) printer_.print(style_.on_saved(record.at.epoch - 1, record.path));
}

void CompatLog::ended(const FinalRecord& record) {
  end_.time = record.at.elapsed;
  end_.peak_bytes = record.peak_memory.value;
  if (style_.on_end != nullptr) printer_.print(style_.on_end(run_, end_));
  printer_.print(profile_part(record));
  printer_.print(digest_part(record));
}

std::string python_text(double value) {
  std::string text = fmt::format("{}", value);
  const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return is_whole ? text + ".0" : text;
}

}  // namespace lockstep::training
