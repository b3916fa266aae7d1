#include "training/run/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "training/recipe/keys.hpp"

namespace lockstep::training {
namespace {

bool is_of_training(const Key& key) {
  constexpr std::array<std::string_view, 6> of_batches{"accumulate", "epochs",         "samples",
                                                       "max-steps",  "evaluate-every", "save-every"};
  return key.section == Section::optimizer || key.section == Section::schedule ||
         std::ranges::find(of_batches, key.name) != of_batches.end();
}

void check_resume(const RunOptions& options) {
  if (options.resume == "never") return;
  if (options.resume == "auto" && options.run_dir.empty())
    core::fail_usage({.what = "without a run directory there is nothing to go on with",
                      .where = "--resume auto",
                      .expected = "--run-dir FOLDER, the same each time",
                      .fix = "name one, or say --resume FOLDER"});
  std::string other;
  if (options.resume != "auto" && !options.init_from.empty()) other = "--init-from";
  if (options.evaluate_only) other = "--evaluate-only";
  if (options.dry_run) other = "--dry-run";
  if (other.empty()) return;
  core::fail_usage({.what = fmt::format("--resume has no effect beside {}", other),
                    .where = "--resume",
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

/// It makes runs of its own, of which nothing is kept.
void check_verification(const RunOptions& options) {
  if (!options.verify_resume) return;
  std::string other;
  if (options.resume != "never") other = "--resume";
  if (!options.save_weights.empty()) other = "--save-weights";
  if (options.time_limit.value >= 0) other = "--time-limit";
  if (options.keep_epochs > 0) other = "--keep-epochs";
  if (options.evaluate_only) other = "--evaluate-only";
  if (options.compat) other = "--compat";
  if (options.dry_run) other = "--dry-run";
  if (options.profile) other = "--profile";
  if (options.drill) other = "--inject";
  if (other.empty()) return;
  core::fail_usage({.what = fmt::format("{} has no effect beside --verify-resume", other),
                    .where = other,
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

/// What a drill spoils is all in the run's own folder.
void check_drill(const RunOptions& options) {
  if (!options.drill) return;
  std::string other;
  if (!options.save_weights.empty()) other = "--save-weights";
  if (options.dry_run) other = "--dry-run";
  if (other.empty()) return;
  core::fail_usage({.what = "faults are injected into runs that keep to their own folder",
                    .where = fmt::format("--inject, {}", other),
                    .expected = "one of the two",
                    .fix = fmt::format("leave out {}", other)});
}

}  // namespace

void declare_run(core::Flags& flags, RunOptions& options) {
  flags.choice("--device", "device", options.device.kind, runtime::all_device_kinds);
  flags.toggle("--share-gpu", options.device.shares_gpu);
  flags.text("--run-dir", options.run_dir);
  flags.text("--init-from", options.init_from);
  flags.text("--resume", options.resume);
  flags.toggle("--resume-anyway", options.resume_anyway);
  flags.number("--keep", options.keep, std::uint64_t{1}, std::uint64_t{1'000'000});
  flags.number("--keep-epochs", options.keep_epochs, std::uint64_t{1}, std::uint64_t{1'000'000});
  flags.seconds("--time-limit", options.time_limit);
  flags.text("--save-weights", options.save_weights);
  flags.toggle("--autotune", options.tune);
  flags.toggle("--profile", options.profile);
  flags.toggle("--dry-run", options.dry_run);
  flags.toggle("--evaluate-only", options.evaluate_only);
  flags.toggle("--verify-resume", options.verify_resume);
  flags.toggle("--compat", options.compat);
  flags.toggle("--digest", options.digest);
  flags.value("--inject", [&options](const std::string& text) {
    options.drill = std::make_shared<runtime::Drill>(runtime::parse_faults(text, runtime::FaultTaker::train));
  });
  flags.toggle("--print-config", options.print_config);
}

std::string run_help() {
  return std::string{R"(
The run
      --nproc N             start N ranks on this machine                             (what the launcher started)
      --expect-ranks N      end at once unless there are N ranks
      --verbose             with --nproc: also what the launcher says about a job that failed
      --device D            auto: GPUs where every rank has one, else the host; host; cuda: GPUs, or an error  (auto)
      --share-gpu           several ranks may have the same GPU: for tests, as it is slow
      --autotune            GPUs: time all that cuDNN has for each layer, which takes minutes, and keep the fastest for
                            later runs; else what looks best, for seconds
      --run-dir FOLDER      where the run is kept                                     (runs/RECIPE-DATE-N)
      --init-from WHAT      begin with these weights instead of the seed's: a file (HDF5, .npz, .safetensors), a
                            checkpoint, or a run, of which the newest whole checkpoint is taken
      --resume WHAT         go on from the newest whole checkpoint of --run-dir, if there is one (auto), or from that of
                            another run, or from one: its folder                      (never)
      --resume-anyway       also with another recipe or set than it was begun with
      --keep N              checkpoints that are kept, the newest; and the one with the best evaluation, as `best`  (3)
      --keep-epochs N       also the one of every Nth epoch, as `epoch-010`           (none)
      --time-limit T        stop within T, with a checkpoint, exit code 85; 0: none   (what is left of a Slurm or PBS job)
      --save-weights FILE   where the weights go                                      (weights.h5 in the run's folder)
      --evaluate-only       measure accuracy or loss of the split for evaluation, on the --device; train nothing
      --verify-resume       train without an interruption, and with one and resumed on as many ranks and on others: are
                            the bits the same? Nothing is kept; of no given length, 100 steps at most
      --replay FOLDER       make a step that was not finite again, on one rank of the host: where does that begin? FOLDER is
                            what such a run leaves, bad-step-N; no RECIPE, but flags of a recipe (all before The run) may
                            change it. Exit code 0: not finite again; 1: finite
      --self-test           does the GPU compute what the host does? Models of all kinds of layers, or the MODELs named in
                            place of RECIPE (toy, mnist_cnn, movielens, resnet18, bottlenecks, resnet50), forward and
                            backward, with a table of errors. Exit code 1: not within the limits. On one rank; takes
                            --device (cuda unless given), --timeout and no other flags
      --compat              print the lines of the tutorial that the recipe replaces
      --dry-run             tell what a run needs: memory (the host's; on GPUs theirs, and whether it fits: exit code 2 if
                            not), steps, traffic; and train nothing
      --profile             time by layer, with its share of the step and of what the machine can do
      --timeout T           name the rank that hangs, and end, after T without progress; 0: never  (300s)
      --digest              at the end, print a digest of weights and losses
      --print-config        print the recipe with the origin of each value, and train nothing
      --inject FAULT,...    a fire drill: what is below happens on purpose, in a run with a folder of its own. A rank ...
)"} + runtime::fault_help(runtime::FaultTaker::train) +
         R"(                            N: the Nth time, the step or the batch, or each; else the first

Exit codes: 0 done, 1 the loss is not finite or a verification failed, 2 usage or bad input, 3 system or MPI, 4 a rank
hangs, 85 stopped with a checkpoint: run it again with --resume auto, 128+n ended by signal n.
)";
}

void check_run(const RunOptions& options, const ResolvedRecipe& resolved) {
  check_verification(options);
  check_resume(options);
  check_drill(options);
  if (options.device.shares_gpu && options.device.kind == runtime::DeviceKind::host)
    core::fail_usage({.what = "the host is no GPU to be shared",
                      .where = "--share-gpu, --device",
                      .expected = "--device cuda, or auto",
                      .fix = "leave out --share-gpu"});
  if (!options.evaluate_only) return;
  std::string flag;
  for (std::size_t i = 0; i < all_keys().size(); ++i)
    if (resolved.origins[i].is_given && resolved.origins[i].layer == Layer::command_line &&
        is_of_training(all_keys()[i]))
      flag = resolved.origins[i].where;
  if (!options.save_weights.empty()) flag = "--save-weights";
  if (options.time_limit.value > 0) flag = "--time-limit";
  if (options.keep_epochs > 0) flag = "--keep-epochs";
  if (options.compat) flag = "--compat";
  if (options.dry_run) flag = "--dry-run";
  if (options.profile) flag = "--profile";
  if (flag.empty()) return;
  core::fail_usage({.what = fmt::format("{} goes with training, and --evaluate-only trains nothing", flag),
                    .where = flag,
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

}  // namespace lockstep::training
