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
  constexpr std::uint64_t most = 1'000'000;
  flags.choice("--device D", "device", options.device.kind, runtime::all_device_kinds, runtime::device_help);
  flags.toggle("--share-gpu", options.device.shares_gpu, "several ranks may share a GPU; slow, for tests");
  flags.toggle(
      "--autotune", options.tune,
      "on GPUs: time all plans for each layer (41 s for a ResNet-18 on an H200) and keep the fastest for later "
      "runs; without it, time a few (seconds)");
  flags.text("--run-dir FOLDER", options.run_dir, {"folder of the run", "runs/RECIPE-DATE-N"});
  flags.text("--init-from WHAT", options.init_from,
             {"begin with these weights: a file (HDF5, .npz, .safetensors), a checkpoint, or the newest complete "
              "checkpoint of a run",
              "from the seed"});
  flags.text("--resume WHAT", options.resume,
             "auto: resume from the newest complete checkpoint of --run-dir, if there is one; or from that of another "
             "run, or from a checkpoint: its folder");
  flags.toggle("--resume-anyway", options.resume_anyway, "resume although the recipe or the set is another one");
  flags.number("--keep N", options.keep, std::uint64_t{1}, most,
               "keep the N newest checkpoints, and the one with the best evaluation as `best`");
  flags.number("--keep-epochs N", options.keep_epochs, std::uint64_t{1}, most,
               {"also keep every Nth epoch's, as `epoch-010`", "none"});
  flags.seconds("--time-limit T", options.time_limit,
                {"stop within T with a checkpoint and exit code 85; 0: none", "what is left of a Slurm or PBS job"});
  flags.text("--save-weights FILE", options.save_weights, {"file for the weights", "weights.h5 in the run's folder"});
  flags.toggle("--evaluate-only", options.evaluate_only,
               "measure accuracy or loss on the evaluation split; train nothing");
  flags.toggle("--verify-resume", options.verify_resume,
               "compare an uninterrupted run with resumed ones, on the same and another rank count, bit by bit. Keeps "
               "nothing if they are equal; at most 100 steps unless a length is given");
  flags.mention("--replay FOLDER",
                "repeat a step that was not finite, on one rank of the host, and name the first non-finite value. "
                "FOLDER is the bad-step-N of such a run. Takes no RECIPE; flags of a recipe (all above The run) change "
                "it. Exit code 0: not finite again; 1: finite");
  flags.mention(
      "--self-test",
      "compare the GPU with the host, forward and backward, for models with all kinds of layers, or for those "
      "named in place of RECIPE (toy, mnist_cnn, movielens, resnet18, bottlenecks, resnet50). Prints errors; "
      "exit code 1: beyond the limits. One rank; takes --device (a GPU unless given), --timeout and no other "
      "flags");
  flags.toggle("--compat", options.compat, "print the lines of the tutorial that the recipe replaces");
  flags.toggle(
      "--dry-run", options.dry_run,
      "print memory, steps and traffic of the run, with each strategy, and train nothing; exit code 2 if it does "
      "not fit into the memory of a GPU");
  flags.toggle("--profile", options.profile,
               "print the time of each layer, its share of the step and of the machine's limit");
  flags.toggle("--digest", options.digest, "at the end, print a digest of weights and losses");
  flags.toggle("--print-config", options.print_config,
               "print the recipe with the origin of each value, and train nothing");
  flags.value("--inject FAULT,...",
              "fire drill: cause these faults, in a run with a folder of its own. N: the Nth time, the step or the "
              "batch, or `each` (default: the first). A rank ...",
              [&options](const std::string& text) {
                options.drill =
                    std::make_shared<runtime::Drill>(runtime::parse_faults(text, runtime::FaultTaker::train));
              });
  flags.note(runtime::fault_help(runtime::FaultTaker::train));
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
    if (resolved.origins[i].is_given && resolved.origins[i].level == Level::command_line &&
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
