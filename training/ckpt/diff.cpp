// lockstep ckpt diff: the first tensor and element in which two checkpoints differ.

#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/compare.hpp"
#include "core/print.hpp"
#include "training/ckpt/checkpoints.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

struct Pair {
  std::string first, second;
};

/// As much of a value as fits beside another: losses are as many as steps.
std::string shown(const nlohmann::ordered_json& value) {
  constexpr std::size_t most = 60;
  const std::string text = value.dump();
  return text.size() <= most ? text : fmt::format("{}... ({} characters)", text.substr(0, most), text.size());
}

void print_states(const checkpoint::Checkpoint& first, const checkpoint::Checkpoint& second) {
  const auto a = nlohmann::ordered_json::parse(first.content()).value("state", nlohmann::ordered_json::object());
  const auto b = nlohmann::ordered_json::parse(second.content()).value("state", nlohmann::ordered_json::object());
  for (const auto& [key, value] : a.items())
    if (!b.contains(key) || b.at(key) != value)
      core::print("{}: {} and {}\n", key, shown(value), b.contains(key) ? shown(b.at(key)) : "nothing");
}

core::ExitCode diff(const Pair& folders) {
  const auto& alone = runtime::Communicator::alone();
  const auto open = [&](const std::string& folder) {
    auto found = checkpoint::open_first_whole(alone, [&] { return require_checkpoints(folder); });
    if (!found)
      throw core::Error{core::ExitCode::failed, {.what = fmt::format("no checkpoint in '{}' is whole", folder)}};
    return std::move(*found);
  };
  const checkpoint::Checkpoint first = open(folders.first), second = open(folders.second);
  const checkpoint::Comparison comparison = checkpoint::compare(first, second);
  print_states(first, second);
  if (comparison.n_differing == 0) {
    core::print("{} and {}: all {} tensors are equal to the bit\n", first.path(), second.path(), comparison.n_equal);
    return core::ExitCode::ok;
  }
  core::print("{}\n{} and {}: {} of {} tensors differ\n", comparison.first, first.path(), second.path(),
              comparison.n_differing, comparison.n_equal + comparison.n_differing);
  return core::ExitCode::failed;
}

}  // namespace

constexpr std::string_view diff_help = R"(  lockstep ckpt diff r s
  lockstep ckpt diff r/checkpoints/step-000000100 r/checkpoints/step-000000200

Compares all tensors bit by bit: parameters, states of the optimizer, statistics. The number of ranks that wrote them
does not matter. Prints how the positions of the runs differ. For the first tensor that differs it prints the first
different element, both values, and the number of floats between them (ULP). For a run's folder it uses the newest
complete checkpoint. Exit code 0: equal; 1: different, or one is damaged.

)";

Action declare_diff(core::Flags& flags) {
  flags.note(diff_help);
  auto folders = std::make_shared<Pair>();
  flags.word("FOLDER", folders->first);
  flags.word("OTHER", folders->second);
  return {.check = {}, .run = [folders](const runtime::Session& session) {
            return on_first_rank(session, [&] { return diff(*folders); });
          }};
}

}  // namespace lockstep::training::ckpt
