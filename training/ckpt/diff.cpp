// lockstep ckpt diff: the first tensor and element in which two checkpoints differ.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/print.hpp"
#include "training/ckpt/checkpoints.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

struct Pair {
  std::string first, second;
};

/// How many floats lie between two, -0 and 0 being neighbours; NaNs count by their bits.
std::int64_t ulps_between(float a, float b) {
  const auto place = [](float value) {
    const auto bits = std::bit_cast<std::int32_t>(value);
    return bits < 0 ? std::int64_t{INT32_MIN} - bits - 1 : std::int64_t{bits};
  };
  return std::abs(place(a) - place(b));
}

/// "[3, 0, 2]" of element `at`.
std::string index_text(const std::vector<std::uint64_t>& shape, std::size_t at) {
  std::vector<std::string> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; at /= shape[d]) index[d] = std::to_string(at % shape[d]);
  return fmt::format("[{}]", core::join(index));
}

/// What differs in a tensor of both; empty if nothing does.
std::string compare(const checkpoint::Checkpoint& first, const checkpoint::Checkpoint& second,
                    const checkpoint::Box& box) {
  std::vector<float> a(box.n_elements()), b(box.n_elements());
  first.read(box, a);
  second.read(box, b);
  std::size_t n_differing = 0, at = 0;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (n_differing++ == 0) at = i;
    most = std::max(most, ulps_between(a[i], b[i]));
  }
  if (n_differing == 0) return {};
  return fmt::format("{} {}: {:.9g} and {:.9g}, {} ULP apart; {} of {} elements differ, by {} ULP at most", box.tensor,
                     index_text(box.shape, at), a[at], b[at], ulps_between(a[at], b[at]), n_differing, a.size(), most);
}

void print_states(const checkpoint::Checkpoint& first, const checkpoint::Checkpoint& second) {
  const auto a = nlohmann::ordered_json::parse(first.content()).value("state", nlohmann::ordered_json::object());
  const auto b = nlohmann::ordered_json::parse(second.content()).value("state", nlohmann::ordered_json::object());
  for (const auto& [key, value] : a.items())
    if (!b.contains(key) || b.at(key) != value)
      core::print("{}: {} and {}\n", key, value.dump(), b.contains(key) ? b.at(key).dump() : "nothing");
}

core::ExitCode diff(const Pair& folders) {
  const auto alone = runtime::Communicator::alone();
  const auto open = [&](const std::string& folder) {
    auto found = checkpoint::open_first_whole(alone, require_checkpoints(folder));
    if (!found)
      throw core::Error{core::ExitCode::failed, {.what = fmt::format("no checkpoint in '{}' is whole", folder)}};
    return std::move(*found);
  };
  const checkpoint::Checkpoint first = open(folders.first), second = open(folders.second);
  std::map<std::string, checkpoint::Box> others;
  for (const checkpoint::Box& box : second.tensors()) others[box.tensor] = box;
  std::size_t n_equal = 0, n_differing = 0;
  std::string told;
  const auto count = [&](const std::string& difference) {
    n_equal += difference.empty() ? 1 : 0;
    n_differing += difference.empty() ? 0 : 1;
    if (told.empty()) told = difference;
  };
  for (const checkpoint::Box& box : first.tensors()) {
    const auto other = others.find(box.tensor);
    if (other == others.end())
      count(fmt::format("{}: only in {}", box.tensor, first.path()));
    else if (other->second.shape != box.shape)
      count(fmt::format("{}: of different shapes", box.tensor));
    else
      count(compare(first, second, box));
    if (other != others.end()) others.erase(other);
  }
  for (const auto& [name, box] : others) count(fmt::format("{}: only in {}", name, second.path()));
  print_states(first, second);
  if (n_differing == 0) {
    core::print("{} and {}: all {} tensors are equal to the bit\n", first.path(), second.path(), n_equal);
    return core::ExitCode::ok;
  }
  core::print("{}\n{} and {}: {} of {} tensors differ\n", told, first.path(), second.path(), n_differing,
              n_equal + n_differing);
  return core::ExitCode::failed;
}

}  // namespace

std::string diff_help() {
  return R"(  lockstep ckpt diff r s
  lockstep ckpt diff r/checkpoints/step-000000100 r/checkpoints/step-000000200

Compares all tensors to the bit, whatever ranks wrote them: parameters, states of the optimizer, statistics. Prints what of the
runs' places differs, and of the first tensor that differs the first element, both values and how many floats lie
between them (ULP). Of a run's folder the newest whole checkpoint is taken. Exit code 0: equal; 1: not, or one is damaged.

)";
}

Action declare_diff(core::Flags& flags) {
  auto folders = std::make_shared<Pair>();
  flags.word("FOLDER", folders->first);
  flags.word("OTHER", folders->second);
  return {.check = {}, .run = [folders](const runtime::Session& session) {
            return on_first_rank(session, [&] { return diff(*folders); });
          }};
}

}  // namespace lockstep::training::ckpt
