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
    core::fail_usage({.what = "--resume auto needs the folder of a run",
                      .where = "--resume auto",
                      .expected = "--run-dir FOLDER, the same each time",
                      .fix = "add --run-dir FOLDER, or use --resume FOLDER"});
  std::string other;
  if (options.resume != "auto" && !options.init_from.empty()) other = "--init-from";
  if (options.evaluate_only) other = "--evaluate-only";
  if (options.dry_run) other = "--dry-run";
  if (other.empty()) return;
  core::fail_usage({.what = fmt::format("--resume has no effect with {}", other),
                    .where = "--resume",
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

/// It starts its own runs, and keeps none of them.
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
  core::fail_usage({.what = fmt::format("{} has no effect with --verify-resume", other),
                    .where = other,
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

/// A drill may damage only files in the run's own folder.
void check_drill(const RunOptions& options) {
  if (!options.drill) return;
  std::string other;
  if (!options.save_weights.empty()) other = "--save-weights";
  if (options.dry_run) other = "--dry-run";
  if (other.empty()) return;
  core::fail_usage({.what = "a run with injected faults writes only to its own folder",
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
      --expect-ranks N      end at once if there are not N ranks
      --verbose             with --nproc: also print the launcher's messages about a failed job
      --device D            auto: GPUs if every rank has one, else the host; host; cuda: GPUs, or an error  (auto)
      --share-gpu           several ranks may share a GPU; slow, for tests
      --autotune            on GPUs: time all plans of cuDNN for each layer (41 s for a ResNet-18 on an H200) and keep
                            the fastest for later runs; without it, time a few (seconds)
      --run-dir FOLDER      folder of the run                                         (runs/RECIPE-DATE-N)
      --init-from WHAT      begin with these weights: a file (HDF5, .npz, .safetensors), a checkpoint, or the newest
                            complete checkpoint of a run                             (from the seed)
      --resume WHAT         auto: resume from the newest complete checkpoint of --run-dir, if there is one; or from
                            that of another run, or from a checkpoint: its folder     (never)
      --resume-anyway       resume although the recipe or the set is another one
      --keep N              keep the N newest checkpoints, and the one with the best evaluation as `best`  (3)
      --keep-epochs N       also keep every Nth epoch's, as `epoch-010`               (none)
      --time-limit T        stop within T with a checkpoint and exit code 85; 0: none (what is left of a Slurm or PBS job)
      --save-weights FILE   file for the weights                                      (weights.h5 in the run's folder)
      --evaluate-only       measure accuracy or loss on the evaluation split; train nothing
      --verify-resume       compare an uninterrupted run with resumed ones, on the same and another rank count, bit by
                            bit. Keeps nothing if they are equal; at most 100 steps unless a length is given
      --replay FOLDER       repeat a step that was not finite, on one rank of the host, and name the first non-finite
                            value. FOLDER is the bad-step-N of such a run. Takes no RECIPE; flags of a recipe (all
                            above The run) change it. Exit code 0: not finite again; 1: finite
      --self-test           compare the GPU with the host, forward and backward, for models with all kinds of layers, or
                            for those named in place of RECIPE (toy, mnist_cnn, movielens, resnet18, bottlenecks,
                            resnet50). Prints errors; exit code 1: beyond the limits. One rank; takes --device (cuda
                            unless given), --timeout and no other flags
      --compat              print the lines of the tutorial that the recipe replaces
      --dry-run             print memory, steps and traffic of the run, and train nothing; exit code 2 if it does not fit
                            into the memory of a GPU
      --profile             print the time of each layer, its share of the step and of the machine's limit
      --timeout T           after T without progress, name the rank that hangs and end; 0: never  (300s)
      --digest              at the end, print a digest of weights and losses
      --print-config        print the recipe with the origin of each value, and train nothing
      --inject FAULT,...    fire drill: cause these faults, in a run with a folder of its own. A rank ...
)"} + runtime::fault_help(runtime::FaultTaker::train) +
         R"(                            N: the Nth time, the step or the batch, or `each`         (the first)

Exit codes: 0 done, 1 the loss is not finite or a verification failed, 2 usage or bad input, 3 system or MPI, 4 a rank
hangs, 85 stopped with a checkpoint (resume with --resume auto), 128+n ended by signal n.
)";
}

void check_run(const RunOptions& options, const ResolvedRecipe& resolved) {
  check_verification(options);
  check_resume(options);
  check_drill(options);
  if (options.device.shares_gpu && options.device.kind == runtime::DeviceKind::host)
    core::fail_usage({.what = "ranks share only GPUs, and this run is on the host",
                      .where = "--share-gpu, --device",
                      .expected = fmt::format("--device {}, or auto", name(runtime::accelerated)),
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
  core::fail_usage({.what = fmt::format("{} needs training, but --evaluate-only trains nothing", flag),
                    .where = flag,
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

}  // namespace lockstep::training
