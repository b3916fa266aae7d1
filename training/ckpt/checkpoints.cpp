#include "training/ckpt/checkpoints.hpp"

#include <nlohmann/json.hpp>

#include "checkpoint/folder.hpp"

namespace lockstep::training::ckpt {

std::vector<std::string> require_checkpoints(const std::string& folder) {
  return checkpoint::require_checkpoints(folder, "FOLDER");
}

Place place_of(const checkpoint::Checkpoint& one) {
  const nlohmann::json content = nlohmann::json::parse(one.content());
  const nlohmann::json state = content.value("state", nlohmann::json::object());
  return {state.value("epoch", std::uint64_t{0}) + 1, state.value("step", std::uint64_t{0}),
          state.value("samples_seen", std::uint64_t{0})};
}

int on_first_rank(const runtime::Session& session, const std::function<core::ExitCode()>& work) {
  core::ExitCode code = core::ExitCode::ok;
  const auto complaint = core::complaint_of([&] {
    if (session.world().rank() == 0) code = work();
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return core::to_int(runtime::broadcast_value(session.world(), code));
}

}  // namespace lockstep::training::ckpt
